// @vitest-environment node
import uPlot from "uplot";
import { describe, expect, it, vi } from "vitest";
import { sparsePath, sparseRange } from "./sparsePath";

const DATA = [
  [1, 2, 3, 4, 5],
  [1, undefined, 3, undefined, 5],
  [undefined, 2, undefined, 4, undefined],
];
const FILLED = [[], [0, 2, 4], [1, 3]];

it("a path connects the values of one series between two indices, and reads no other index", () => {
  const drawn: [number, number][] = [];
  vi.stubGlobal(
    "Path2D",
    class {
      lineTo = (x: number, y: number) => drawn.push([x, y]);
    },
  );
  const valToPos = vi.fn((value: number, scale: string) => (scale === "x" ? 10.4 * value : 100.6 - value));
  const path = sparsePath(() => FILLED);
  path({ data: DATA, valToPos } as unknown as uPlot, 1, 0, 2);
  expect(drawn).toEqual([
    [10, 100],
    [31, 98],
  ]);
  expect(valToPos).toHaveBeenCalledTimes(4);
});

describe("the range of y", () => {
  const plot = (idxs: [number, number], second: Partial<uPlot.Series> = {}) =>
    ({ data: DATA, series: [{ idxs }, { show: true, auto: false }, { show: true, auto: false, ...second }] }) as uPlot;

  it("is that of the visible values", () => {
    expect(sparseRange(plot([0, 4]), null, null, FILLED, false)).toEqual(uPlot.rangeNum(1, 5, 0.1, true));
    expect(sparseRange(plot([1, 3]), null, null, FILLED, false)).toEqual(uPlot.rangeNum(2, 4, 0.1, true));
    expect(sparseRange(plot([1, 3]), null, null, FILLED, true)).toEqual(uPlot.rangeLog(2, 4, 10, true));
  });
  it("excludes hidden lines, and uses the range that uPlot found for others", () => {
    expect(sparseRange(plot([1, 3], { show: false }), null, null, FILLED, false)).toEqual(
      uPlot.rangeNum(3, 3, 0.1, true),
    );
    expect(sparseRange(plot([1, 3]), -7, 9, FILLED, false)).toEqual(uPlot.rangeNum(-7, 9, 0.1, true));
  });
  it("is absent without a visible value", () => {
    expect(sparseRange(plot([1, 1], { show: false }), null, null, FILLED, false)).toEqual([null, null]);
  });
});
