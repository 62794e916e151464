import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { align } from "./alignment";
import { bandOf, valueAt } from "./bands";
import { cell, csvOf } from "./csv";
import type { ChartLine } from "./line";
import { pointsOf } from "./line";
import { levelsOf, strokeOf } from "./palette";
import { smoothed } from "./smoothing";
import { spanOf } from "./xSpan";

const line = (key: string, x: number[], y: number[]): ChartLine => ({ key, label: key, x, y, stroke: strokeOf(0) });

describe("the span of an axis", () => {
  it("goes from the first point to the last", () => expect(spanOf(3, 8, "batches")).toEqual([3, 8]));
  it("is one minute around a single time, and two steps around a single step", () => {
    expect(spanOf(1000, 1000, "time")).toEqual([970, 1030]);
    expect(spanOf(0, 0, "batches")).toEqual([-1, 1]);
  });
});

describe("strokes", () => {
  it("of twenty-four runs, training and validation, are all different", () => {
    const ids = Array.from({ length: 24 }, (_, run) => run + 100);
    const levels = levelsOf(ids);
    const looks = [0, 1].flatMap((style) => ids.map((id) => JSON.stringify(strokeOf(id, style, levels.get(id)))));
    expect(new Set(looks).size).toBe(48);
  });

  it("count the earlier ids of the same colour", () =>
    expect([...levelsOf([3, 11, 4, 19, 12, 3])]).toEqual([
      [3, 0],
      [11, 1],
      [4, 0],
      [19, 2],
      [12, 1],
    ]));
});

describe("smoothing", () => {
  it("keeps a constant line constant from its first point on", () => {
    for (const value of smoothed([3, 3, 3, 3], 0.9)) expect(value).toBeCloseTo(3);
  });
  it("has no effect without weight", () => expect(smoothed([1, 5], 0)).toEqual([1, 5]));
  it("stays between minimum and maximum, and keeps values that are not finite", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.integer({ min: -1000, max: 1000 }), fc.constantFrom(NaN, Infinity))),
        fc.double({ min: 0, max: 0.99, noNaN: true }),
        (values, weight) => {
          const finite = values.filter(Number.isFinite);
          smoothed(values, weight).forEach((value, index) => {
            if (!Number.isFinite(values[index])) expect(value).toBe(values[index]);
            else {
              expect(value).toBeGreaterThanOrEqual(Math.min(...finite) - 1e-6);
              expect(value).toBeLessThanOrEqual(Math.max(...finite) + 1e-6);
            }
          });
        },
      ),
    );
  });
});

describe("aligned lines", () => {
  it("keep every point that can be drawn, and list those that cannot", () => {
    const { data, columns, lost } = align(
      [line("a", [1, 2, 3], [1, NaN, Infinity]), line("b", [2], [5])],
      false,
      false,
    );
    expect(data[0]).toEqual([1, 2, 3]);
    expect(data[columns[1]!.line]![1]).toBe(5);
    expect(lost.map(({ x, value }) => [x, value])).toEqual([
      [2, NaN],
      [3, Infinity],
    ]);
  });
  it("list values that are not positive on a logarithmic axis", () => {
    expect(align([line("a", [0, 1, 2], [1, 0, 2])], true, true).lost).toEqual([{ line: 0, x: 1, value: 0 }]);
    expect(align([line("a", [0, 1, 2], [1, 0, 2])], true, true).data[0]).toEqual([1, 2]);
  });
  it("draw the later of two points at one x", () => {
    const { data, columns } = align([line("a", [1, 1], [7, 8])], false, false);
    expect(data[columns[0]!.line]).toEqual([8]);
  });
  it("record the indices of their values, without those that cannot be drawn", () => {
    const { data, filled } = align([line("a", [1, 3, 9], [1, NaN, 2]), line("b", [3, 4], [5, 6])], false, false);
    expect(data).toEqual([
      [1, 3, 4, 9],
      [1, null, undefined, 2],
      [undefined, 5, 6, undefined],
    ]);
    expect(filled).toEqual([[], [0, 3], [1, 2]]);
  });
  it("may be empty", () => expect(align([], false, false).data).toEqual([[]]));
});

describe("a band", () => {
  it("spans minimum to maximum, also between points", () => {
    const band = bandOf([
      { x: [0, 10], y: [0, 10] },
      { x: [0, 5, 10], y: [4, 4, 4] },
    ]);
    expect(band.x).toEqual([0, 5, 10]);
    expect(band.least).toEqual([0, 4, 4]);
    expect(band.greatest).toEqual([4, 5, 10]);
  });
  it("ends where no line continues", () => expect(valueAt({ x: [0, 1], y: [0, 1] }, 2)).toBeNaN());
});

describe("CSV tables", () => {
  const series = {
    trialId: 1,
    group: "validation",
    name: "=cmd()",
    batches: [1],
    times: [0],
    epochs: null,
    values: [NaN],
    count: 1,
    total: 1,
  };
  it("have one row per point", () =>
    expect(csvOf([series]).split("\r\n")[1]).toBe("1,validation,'=cmd(),1,,1970-01-01T00:00:00.000Z,NaN"));
  it.each([
    ["a,b", '"a,b"'],
    ['say "x"', '"say ""x"""'],
    ["+1", "'+1"],
    ["loss", "loss"],
  ])("write %s as %s", (text, written) => expect(cell(text)).toBe(written));
});

describe("points over an axis", () => {
  it("are sorted by x, without those that have no x", () => {
    const series = {
      trialId: 1,
      group: "g",
      name: "n",
      batches: [1, 2, 3],
      times: [3, 1, 2],
      epochs: [NaN, 2, 1],
      values: [10, 20, 30],
      count: 3,
      total: 3,
    };
    expect(pointsOf(series, "epochs")).toEqual({ x: [1, 2], y: [30, 20] });
    expect(pointsOf(series, "time").y).toEqual([20, 30, 10]);
    expect(pointsOf({ ...series, epochs: null }, "epochs").x).toEqual([]);
  });
});
