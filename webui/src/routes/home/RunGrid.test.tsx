import { act, cleanup, fireEvent, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Column, Row } from "@/services/columns";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { type Asked, fakeMaster } from "@/testing/fakeMaster";
import { rowOf } from "@/testing/samples";
import { Home } from "../Home";
import { reloadColumnSizes } from "./columnSizes";
import { listAddress } from "./lastList";

const SEARCH = "POST /detent/experiments/search";
const IDS = "POST /detent/experiments/search/ids";

async function list(rows: Row[], at = "/?col=id&col=name&col=tags", total = rows.length) {
  const master = fakeMaster({
    [SEARCH]: ({ body }: Asked) => {
      const { offset, limit } = body as { offset: number; limit: number };
      return { total, offset, experiments: rows.slice(offset, offset + limit), unknownColumns: [] };
    },
    [IDS]: { ids: rows.map(({ id }) => id), total },
    "GET /detent/columns": { columns: [], total: 0 },
    "GET /api/v1/users/setting": { settings: [] },
  });
  const shown = drawn(<Home />, at);
  await pass();
  return { master, ...shown };
}

const STATES: Row["state"][] = [
  "STATE_COMPLETED",
  "STATE_ERROR",
  "STATE_QUEUED",
  "STATE_PAUSED",
  "STATE_RUNNING",
  "STATE_STOPPING_CANCELED",
];

/** Returns `count` rows, the newest first. */
const rowsOf = (count: number) => Array.from({ length: count }, (_, index) => rowOf(count - index));
const box = (id: number) => screen.getByLabelText(`Select experiment ${id}`);
const all = () => screen.getByLabelText<HTMLInputElement>("Select all shown experiments");
const cellOf = (text: string) => screen.getByText(text).closest("[role=gridcell]");

beforeEach(() => {
  stopClock();
  localStorage.clear();
  sessionStorage.clear();
  reloadColumnSizes();
});

describe("a click on a row", () => {
  it("opens the experiment", async () => {
    const { address } = await list([rowOf(2, { description: "wide" }), rowOf(1)], "/?col=id&col=description");
    fireEvent.click(screen.getByText("wide"));
    expect(address()).toBe("/experiments/2");
  });

  it("is left to elements with an action of their own", async () => {
    const { address } = await list([rowOf(2, { labels: ["base"] }), rowOf(1)]);
    const before = address();
    fireEvent.click(box(2));
    fireEvent.click(box(1).closest("label")!);
    expect(address()).toBe(before);
    expect(screen.getByText("2 selected")).toBeVisible();
    await user.click(screen.getByTitle("Show only label base"));
    expect(address()).toMatch(/^\/\?q=label/);
  });

  it("opens another tab with Ctrl", async () => {
    const opened = vi.fn();
    vi.stubGlobal("open", opened);
    const { address } = await list([rowOf(2, { description: "wide" })], "/?col=id&col=description");
    fireEvent.click(screen.getByText("wide"), { ctrlKey: true });
    expect(opened).toHaveBeenCalledWith("/experiments/2");
    expect(address()).toMatch(/^\/\?/);
  });
});

describe("the selection", () => {
  it("of the box in the head is all that the list finds, then none", async () => {
    await list(rowsOf(4));
    expect(all()).not.toBeChecked();
    fireEvent.click(box(3));
    await pass();
    expect(all().indeterminate).toBe(true);
    fireEvent.click(all());
    await pass();
    expect(screen.getByText("4 selected")).toBeVisible();
    expect(all()).toBeChecked();
    fireEvent.click(all());
    expect(screen.queryByText(/ selected$/)).toBeNull();
  });

  it("with Shift covers all rows since the previous click, including those that were never visible", async () => {
    const { master } = await list(rowsOf(250));
    fireEvent.click(box(250));
    const asked = master.of(SEARCH).length;
    const grid = screen.getByRole("grid");
    await act(async () => grid.scrollTo({ top: 249 * 36 }));
    await pass(500);
    fireEvent.click(box(1), { shiftKey: true });
    await pass();
    expect(screen.getByText("250 selected")).toBeVisible();
    expect(master.of(SEARCH).length).toBeGreaterThan(asked + 1);
    fireEvent.click(box(3), { shiftKey: true });
    await pass();
    expect(screen.getByText("247 selected")).toBeVisible();
  });

  it("with Shift on the row works as on its box", async () => {
    const { address } = await list(
      rowsOf(4).map((row) => ({ ...row, description: `about ${row.id}` })),
      "/?col=id&col=description",
    );
    fireEvent.click(box(4));
    fireEvent.click(screen.getByText("about 2"), { shiftKey: true });
    await pass();
    expect(screen.getByText("3 selected")).toBeVisible();
    expect(address()).toMatch(/^\/\?/);
  });

  it("has its bar below the list, where it covers and moves no row", async () => {
    await list(rowsOf(4));
    fireEvent.click(box(3));
    const grid = screen.getByRole("grid");
    const bar = screen.getByRole("toolbar", { name: "Selected experiments" });
    expect(grid.compareDocumentPosition(bar) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
    expect(document.documentElement.style.getPropertyValue("--foot-room")).not.toBe("");
    fireEvent.click(screen.getByText("Clear"));
    expect(document.documentElement.style.getPropertyValue("--foot-room")).toBe("");
  });
});

describe("columns", () => {
  it("keep their width, also when the page is loaded again", async () => {
    await list(rowsOf(2));
    const width = () => screen.getByRole("columnheader", { name: /Labels/ }).style.width;
    const before = parseInt(width());
    fireEvent.mouseDown(document.querySelector("[data-resizer=tags]")!, { clientX: 500 });
    fireEvent.mouseMove(document, { clientX: 533 });
    fireEvent.mouseUp(document, { clientX: 533 });
    expect(parseInt(width())).toBe(before + 33);
    cleanup();
    reloadColumnSizes();
    await list(rowsOf(2));
    expect(parseInt(width())).toBe(before + 33);
  });

  it("give the free width to the name", async () => {
    await list(rowsOf(1));
    expect(cellOf("run 1")).toHaveClass("flexible");
    expect(screen.getByRole("columnheader", { name: /Name/ })).toHaveClass("flexible");
    expect(cellOf("1")).not.toHaveClass("flexible");
  });

  it("of numbers are aligned to the right, with their head", async () => {
    await list(
      [rowOf(1, { cells: { "hp.lr": 0.125, "hp.act": "relu", "validation.acc.max": "NaN" } })],
      "/?col=ran&col=searcherMetricsVal&col=hp.lr&col=hp.act&col=validation.acc.max",
    );
    for (const text of ["0.5", "0.125", "NaN"]) expect(cellOf(text)).toHaveClass("number");
    expect(cellOf("relu")).not.toHaveClass("number");
    for (const name of [/^lr/, /^Best metric/, /^Ran/])
      expect(screen.getByRole("columnheader", { name })).toHaveClass("number");
    expect(screen.getByRole("columnheader", { name: /^act/ })).not.toHaveClass("number");
  });

  it("show progress only for running experiments", async () => {
    await list(
      STATES.map((state, index) => rowOf(index + 1, { state, progress: 0.5 })),
      "/?col=id&col=progress",
    );
    const bars = screen.getAllByRole("progressbar").map((bar) => bar.getAttribute("aria-label"));
    expect(bars).toEqual(["Progress of experiment 5", "Progress of experiment 6"]);
  });

  it("offered for choice begin with hyperparameters and metrics, however many others there are", async () => {
    const { master } = await list(rowsOf(1));
    const found = (column: string, kind: Column["kind"]): Column => ({
      column,
      kind,
      count: 3,
      type: "number",
      displayName: column,
    });
    master.answers["GET /detent/columns"] = ({ query }: Asked) => {
      const kind = query.get("kind") as Column["kind"];
      const names = { hyperparameter: "hp.lr", metric: "validation.loss.min", experiment: "user", config: "config.a" };
      return { columns: [found(names[kind], kind)], total: kind === "config" ? 900 : 1 };
    };
    fireEvent.click(screen.getByRole("button", { name: "Columns" }));
    await pass();
    const panel = within(screen.getByRole("dialog", { name: "Columns" }));
    expect(panel.getAllByRole("heading").map((each) => each.textContent)).toEqual([
      "Shown",
      "Hyperparameters",
      "Metrics",
      "Experiment",
      "Configuration",
    ]);
    expect(within(panel.getByRole("region", { name: "Hyperparameters" })).getByText("hp.lr")).toBeVisible();
    expect(panel.getByText("899 more: type a part of the name.")).toBeVisible();
  });
});

describe("the link back", () => {
  it("leads to the list with its filter, order and columns", async () => {
    await list(rowsOf(1), "/?q=state+%3D+running&sort=name%3Dasc&col=id&col=name");
    expect(listAddress()).toBe("/?q=state+%3D+running&sort=name%3Dasc&col=id&col=name");
    cleanup();
    await list(rowsOf(1), "/");
    expect(listAddress()).toBe("/");
  });
});
