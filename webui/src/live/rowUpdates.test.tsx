import { act, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { LiveProvider } from "@/live/LiveProvider";
import { Home } from "@/routes/Home";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { type Asked, fakeMaster } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { answer, IDS, ROWS, SEARCH } from "@/testing/homePage";
import { rowOf } from "@/testing/samples";
import type { Row } from "@/services/columns";

async function list(query = "") {
  let rows: Row[] = ROWS;
  const found = ({ body }: Asked) => {
    const { ids } = body as { ids?: number[] };
    return { ...answer(ids ? rows.filter(({ id }) => ids.includes(id)) : rows), total: rows.length };
  };
  const master = fakeMaster({
    [SEARCH]: found,
    [IDS]: { ids: [], total: 0 },
    "GET /detent/columns": { columns: [], total: 0 },
    "GET /api/v1/users/setting": { settings: [] },
  });
  const streams = fakeStreams();
  drawn(
    <LiveProvider>
      <Home />
    </LiveProvider>,
    `/?col=name&col=state${query}`,
  );
  await pass(100);
  act(() => streams.newest().hello(true));
  await pass();
  const before = master.of(SEARCH).length;
  return {
    change: async (kind: string, ids: number[], ms = 200) => {
      act(() => streams.newest().change(...ids.map((id) => ({ kind, id: String(id) }))));
      await pass(ms);
    },
    set: (next: Row[]) => (rows = next),
    /** Returns the ids that were requested since the last call; null for the whole list. */
    asked: () =>
      master
        .of(SEARCH)
        .slice(before)
        .map(({ body }) => (body as { ids?: number[] }).ids ?? null),
  };
}

const renamed = (id: number, more: Partial<Row> = {}) =>
  ROWS.map((row) => (row.id === id ? { ...row, name: "renamed", ...more } : row));

describe("an open list", () => {
  beforeEach(() => stopClock());

  it("requests the row whose state changed at once, and shows it", async () => {
    const { change, set, asked } = await list();
    set(renamed(5));
    await change("experiment", [5]);
    expect(asked()).toEqual([[5]]);
    expect(screen.getByText("renamed")).toBeVisible();
  });

  it("requests the rows whose metrics changed at most every two seconds", async () => {
    const { change, asked } = await list();
    for (let count = 0; count < 60; count += 1) await change("metrics", [4, 5], 94);
    expect(asked().length).toBeLessThanOrEqual(3);
    expect(new Set(asked().map(String))).toEqual(new Set(["4,5"]));
  });

  it("requests nothing for metrics of rows that it does not show", async () => {
    const { change, asked } = await list();
    await change("metrics", [77]);
    expect(asked()).toEqual([]);
  });

  it("requests the whole list if an experiment is new, or one no longer matches", async () => {
    const { change, set, asked } = await list();
    set([rowOf(10, { name: "the tenth" }), ...ROWS]);
    await change("experiment", [10]);
    expect(asked()).toEqual([[10], null]);
    expect(screen.getByText("the tenth")).toBeVisible();
    set(ROWS.filter(({ id }) => id !== 5));
    await change("experiment", [5], 1_200);
    expect(asked().slice(2)).toEqual([[5], null]);
  });

  it.each([
    ["metrics", "&sort=searcherMetricsVal"],
    ["metrics", `&q=${encodeURIComponent("loss < 1")}`],
    ["experiment", "&sort=state"],
  ])("requests the whole list if a change of %s may move rows: %s", async (kind, query) => {
    const { change, asked } = await list(query);
    await change(kind, [5]);
    expect(asked()).toEqual([null]);
  });

  it("requests nothing while it is hidden, and the missed changes when it becomes visible", async () => {
    const { change, set, asked } = await list();
    const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
    set(renamed(5));
    await change("experiment", [5], 10_000);
    await change("metrics", [5, 6], 60_000);
    expect(asked()).toEqual([]);
    hidden.mockReturnValue(false);
    act(() => void document.dispatchEvent(new Event("visibilitychange")));
    await pass(100);
    expect(asked()).toEqual([null]);
    expect(screen.getByText("renamed")).toBeVisible();
  });
});
