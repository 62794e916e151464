// @vitest-environment node
import { describe, expect, it } from "vitest";
import { align } from "./alignment";
import { nearestValues, notePlace } from "./hoverValues";
import type { ChartLine } from "./line";

const line = (key: string, y: number[]): ChartLine => ({
  key,
  label: key,
  x: y.map((_, index) => index),
  y,
  stroke: { color: "#000", dash: undefined },
});

function near(values: number[], pointer: number, hidden: string[] = []) {
  const lines = values.map((value) => line(`at ${value}`, [0, value]));
  const { data, columns } = align(lines, false, false);
  const { shown, more } = nearestValues(lines, new Set(hidden), columns, data, 1, (value) => Math.abs(value - pointer));
  return { values: shown.map(({ value }) => value), more };
}

describe("values under the pointer", () => {
  it("are those of the six nearest lines, greatest first, and a count of the rest", () =>
    expect(near([1, 9, 3, 8, 2, 7, 4, 6, 5], 5)).toEqual({ values: [8, 7, 6, 5, 4, 3], more: 3 }));

  it("exclude hidden lines", () => expect(near([1, 2, 3], 1, ["at 1"])).toEqual({ values: [3, 2], more: 0 }));

  it("are those of the last earlier point if a line has none at the pointer", () => {
    const lines = [line("a", [1, 2, 3]), line("b", [5])];
    const { data, columns } = align(lines, false, false);
    const { shown } = nearestValues(lines, new Set(), columns, data, 2, () => 0);
    expect(shown.map(({ line: { key }, value }) => [key, value])).toEqual([
      ["b", 5],
      ["a", 3],
    ]);
  });
});

describe("the note at the pointer", () => {
  const window = { width: 400, height: 300 };
  const note = { width: 150, height: 80 };
  it("is to the right of it", () => expect(notePlace({ x: 100, y: 50 }, note, window)).toEqual({ left: 114, top: 64 }));
  it("is to the left of it at the right edge, and above the lower edge", () =>
    expect(notePlace({ x: 390, y: 290 }, note, window)).toEqual({ left: 226, top: 212 }));
  it("stays inside a window that is hardly wider than itself", () =>
    expect(notePlace({ x: 80, y: 10 }, note, { width: 170, height: 300 }).left).toBe(8));
});
