import { fireEvent, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { type Action, useActions } from "@/keyboard/actions";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { rowOf } from "@/testing/samples";
import { Palette } from "./Palette";

const SEARCH = "POST /detent/experiments/search";

async function opened(actions: Action[] = []) {
  function Page() {
    useActions(actions);
    return <Palette onClose={closed} />;
  }
  const closed = vi.fn();
  const master = fakeMaster({
    [SEARCH]: ({ body }) => {
      const found = JSON.stringify(body).includes("mnist") ? [rowOf(41, { name: "mnist sweep" })] : [];
      return { total: found.length, offset: 0, experiments: found, unknownColumns: [] };
    },
    "GET /detent/cluster/overview": {
      now: new Date().toISOString(),
      agents: [{ id: "gpu-box", slots: [] }],
      queue: [],
    },
    "GET /api/v1/users": { users: [{ id: 3, username: "kim" }] },
  });
  const shown = drawn(<Page />);
  await pass();
  return { master, closed, ...shown };
}

const titles = () => screen.queryAllByRole("option").map((option) => option.textContent?.trim());

async function type(text: string) {
  fireEvent.change(screen.getByRole("combobox"), { target: { value: text } });
  await pass();
}

describe("the palette", () => {
  beforeEach(() => stopClock());

  it("lists the available actions with their keys, and the unavailable ones with the reason, without running them", async () => {
    const [pause, resume] = [vi.fn(), vi.fn()];
    const { closed } = await opened([
      { id: "pause", title: "Pause", keys: "p", group: "Experiment", disabled: "it has ended", run: pause },
      { id: "activate", title: "Activate", keys: "g a", group: "Experiment", run: resume },
      { id: "down", title: "Next line", keys: "j", group: "List", hidden: true, run: pause },
    ]);
    const paused = screen.getByRole("option", { name: /^Pause/ });
    expect(paused).toHaveTextContent("it has ended");
    expect(paused).toHaveAttribute("aria-disabled", "true");
    expect(within(screen.getByRole("option", { name: /^Activate/ })).getAllByText(/^[ga]$/)).toHaveLength(2);
    expect(titles().join()).not.toContain("Next line");
    await user.click(paused);
    await user.keyboard("{Enter}");
    expect(pause).not.toHaveBeenCalled();
    expect(closed).not.toHaveBeenCalled();
    await user.keyboard("{ArrowDown}{Enter}");
    expect(resume).toHaveBeenCalledTimes(1);
    expect(closed).toHaveBeenCalledTimes(1);
  });

  it("finds experiments, machines and people by a part of their name, and opens them", async () => {
    const { address } = await opened();
    await type("mnist");
    expect(titles()).toEqual(["mnist sweep experiment 41, completed"]);
    await user.keyboard("{Enter}");
    expect(address()).toBe("/experiments/41");
    await type("GPU");
    expect(titles()).toEqual(["gpu-box agent"]);
    await type("kim");
    expect(titles()).toEqual(["kim user: their experiments"]);
    await user.keyboard("{Enter}");
    expect(address()).toBe(`/?q=${encodeURIComponent('user = "kim"')}`);
    await type("nothing at all");
    expect(screen.getByText("No results.")).toBeVisible();
  });

  it.each([
    ["trial 12", "/trials/12"],
    ["experiment 12", "/experiments/12"],
    ["12", "/experiments/12"],
  ])("opens %s as typed", async (text, where) => {
    const { address } = await opened();
    await type(text);
    await user.keyboard("{Enter}");
    expect(address()).toBe(where);
  });
});
