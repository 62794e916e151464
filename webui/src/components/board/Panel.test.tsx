import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import uPlot from "uplot";
import { describe, expect, it } from "vitest";
import { drawn, user } from "@/testing/drawn";
import { fakeCanvas } from "@/testing/fakeCanvas";
import { fakeMaster } from "@/testing/fakeMaster";
import { MetricBoard } from "./MetricBoard";

/** The plots of the board, in the order of the panels. */
const plots = () => uPlot.sync("board-7").plots;

const names = ["loss", "accuracy", "epochs"].map((name) => ({ group: "training", name, type: "number" }));
const runs = [1, 2].map((trialId) => ({ trialId, label: `trial ${trialId}` }));

async function board(at = "/") {
  fakeCanvas();
  fakeMaster({
    "POST /detent/series": ({ body }) => {
      const { metrics, trialIds } = body as { metrics: { group: string; name: string }[]; trialIds: number[] };
      const points = { batches: [1, 2], times: [1, 2], epochs: null, values: [3, 4], count: 2, total: 2 };
      return {
        missing: [],
        series: trialIds.flatMap((trialId) => metrics.map((metric) => ({ ...metric, ...points, trialId }))),
      };
    },
  });
  const shown = drawn(<MetricBoard experimentId={7} runs={runs} names={names} searcherMetric="loss" />, at);
  await screen.findAllByRole("list", { name: "Lines" });
  await within(card("loss")).findByRole("button", { name: "trial 1" });
  return shown;
}

const card = (name: string) => screen.getByRole("region", { name });

describe("a panel", () => {
  it("highlights the line whose name has the pointer or the focus", async () => {
    await board();
    const name = within(card("loss")).getByRole("button", { name: "trial 2" });
    const faint = () => plots().map((plot) => plot.series.map(({ alpha }) => alpha !== undefined && alpha < 1));
    expect(faint()).toEqual([
      [false, false, false],
      [false, false, false],
    ]);
    await user.hover(name);
    expect(faint()).toContainEqual([false, true, false]);
    expect(faint()).toContainEqual([false, false, false]);
    await user.unhover(name);
    expect(faint()).not.toContainEqual([false, true, false]);
    act(() => name.focus());
    expect(faint()).toContainEqual([false, true, false]);
  });

  it("hides a line whose name is pressed, also by the keyboard, and shows it again", async () => {
    await board();
    const name = within(card("loss")).getByRole("button", { name: "trial 2" });
    const hidden = () => plots().flatMap(({ series }) => series.filter(({ show }) => show === false)).length;
    expect(name).toHaveAttribute("aria-pressed", "true");
    act(() => name.focus());
    await user.keyboard("{Enter}");
    expect(name).toHaveAttribute("aria-pressed", "false");
    expect(hidden()).toBe(1);
    await user.click(name);
    expect(hidden()).toBe(0);
  });
});

describe("a board", () => {
  it("zooms all of its charts to the range selected on one, and resets by a double click", async () => {
    const { address } = await board();
    const spans = () => plots().map(({ scales }) => [scales.x?.min, scales.x?.max]);
    await waitFor(() =>
      expect(spans()).toEqual([
        [1, 2],
        [1, 2],
      ]),
    );
    const [first, second] = plots();
    act(() => first!.setSelect({ left: 100, width: 200, top: 0, height: 100 }));
    await waitFor(() => expect(address()).toContain("zoom="));
    const zoom = new URLSearchParams(address().slice(2)).get("zoom")!.split("..").map(Number);
    expect(zoom[0]).toBeGreaterThan(1);
    expect(zoom[1]).toBeLessThan(2);
    await waitFor(() => expect(spans()).toEqual([zoom, zoom]));
    act(() => void fireEvent.doubleClick(second!.over));
    await waitFor(() => expect(address()).not.toContain("zoom"));
    await waitFor(() =>
      expect(spans()).toEqual([
        [1, 2],
        [1, 2],
      ]),
    );
  });

  it("offers the axes that have points, and folds counters", async () => {
    await board();
    const axes = within(screen.getByLabelText("x axis")).getAllByRole("option");
    expect(axes.map((each) => each.textContent)).toEqual(["steps", "time"]);
    expect(screen.queryByRole("region", { name: "epochs" })).toBeNull();
    await user.click(screen.getByRole("button", { name: /Counters/ }));
    expect(card("epochs")).toBeInTheDocument();
  });
});
