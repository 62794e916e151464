// @vitest-environment node
import { describe, expect, it } from "vitest";
import { axisOf, type Point, varying } from "./axes";
import { stepOf, stepsOf } from "./HeatMap";
import { searchSpaces } from "./searchSpace";
import { goodness, inkOn, luminance, shade } from "./shades";

describe("an axis", () => {
  it("is logarithmic if values span more than two powers of ten", () => {
    const axis = axisOf("lr", [0.001, 0.01, 0.1]);
    expect(axis.kind).toBe("log");
    expect(axis.place(0.01)).toBeCloseTo(0.5);
    expect(axis.few?.map((each) => each.title)).toEqual(["0.001", "0.01", "0.1"]);
  });
  it("of words places them at equal distances", () => expect(axisOf("o", ["sgd", "adam"]).place("sgd")).toBe(1));
  it("of mixed values treats them as words", () => expect(axisOf("x", [1, "a"]).kind).toBe("words"));
  it("has no place for a missing value", () => expect(axisOf("x", [1, 2]).place(undefined)).toBeNull());
  it("of one value still has a place", () => expect(axisOf("x", [5, 5]).place(5)).toBe(0));
});

it("hyperparameters that differ are found, whatever their names", () => {
  const values = (entries: [string, unknown][]) =>
    Object.assign(Object.create(null) as Record<string, unknown>, Object.fromEntries(entries));
  const points: Point[] = [1, 2].map((each) => ({
    trialId: each,
    experimentId: 1,
    values: values([
      ["same", 1],
      ["lr", each],
    ]),
    metric: each,
  }));
  expect(varying(points)).toEqual(["lr"]);
});

it("the best value is 1, the worst 0, and a missing one NaN", () => {
  expect(goodness([3, 1, NaN, 2], true)).toEqual([0, 1, NaN, 0.5]);
  expect(goodness([3, 1], false)).toEqual([1, 0]);
});

describe("an axis of a search space", () => {
  const spaces = searchSpaces({
    rate: { type: "log", minval: -4, maxval: -1, base: 10 },
    width: { type: "int", minval: 1, maxval: 4 },
    dropout: { type: "double", minval: 0, maxval: 1 },
    steps: { type: "double", minval: 0, maxval: 1, count: 3 },
    batch: { type: "categorical", vals: [64, 16, 32] },
    net: { kind: { type: "categorical", vals: ["deep", "wide"] } },
    fixed: { type: "const", val: 3 },
    plain: 7,
  });
  const axis = (name: string, values: unknown[]) => axisOf(name, values, spaces.get(name));
  const titles = (name: string, values: unknown[]) => axis(name, values).ticks.map(({ title }) => title);

  it("belongs to the hyperparameters that are searched", () =>
    expect([...spaces.keys()]).toEqual(["rate", "width", "dropout", "steps", "batch", "net.kind"]));

  it("is logarithmic for a logarithmic space, from bound to bound, whatever values were tried", () => {
    const rate = axis("rate", [0.002, 0.003]);
    expect(rate.kind).toBe("log");
    expect(rate.place(1e-4)).toBeCloseTo(0);
    expect(rate.place(0.1)).toBeCloseTo(1);
    expect(rate.place(0.001)).toBeCloseTo(1 / 3);
    expect(titles("rate", [0.002])).toEqual(["0.0001", "0.001", "0.01", "0.1"]);
  });

  it("is linear for a linear space, also if values span powers of ten", () => {
    expect(axis("dropout", [0.001, 1]).kind).toBe("number");
    expect(axis("dropout", [0.001, 1]).place(0.5)).toBeCloseTo(0.5);
  });

  it("has the choices in the order of the configuration, including those that were not tried", () => {
    expect(titles("batch", [16])).toEqual(["64", "16", "32"]);
    expect(axis("batch", [16]).place(16)).toBe(0.5);
    expect(titles("net.kind", ["wide"])).toEqual(["deep", "wide"]);
  });

  it("has bins of equal width, or one bin for each of a few whole numbers or grid steps", () => {
    expect(stepsOf(axis("dropout", [0.1, 0.2]))).toHaveLength(6);
    expect(stepOf(axis("dropout", [0.1, 0.2]), 0.1)).toBe(0);
    expect(stepOf(axis("dropout", [0.1, 0.2]), 1)).toBe(5);
    expect(stepsOf(axis("width", [2]))).toEqual(["1", "2", "3", "4"]);
    expect(stepsOf(axis("steps", [0, 0.5, 1]))).toEqual(["0", "0.5", "1"]);
  });

  it("still has a place for a value outside the space", () => expect(axis("width", [9]).place(9)).toBe(1));
});

describe("shades", () => {
  const colors = (dark: boolean) =>
    Array.from({ length: 41 }, (_, index) =>
      shade(index / 40, dark)
        .match(/\d+/g)!
        .map(Number),
    );
  it.each([
    ["light", false, [255, 255, 255]],
    ["dark", true, [24, 29, 37]],
  ])("have contrast on the %s background, and better ones are lighter", (_, dark, ground) => {
    const lights = colors(dark).map(luminance);
    const base = luminance(ground);
    for (const light of lights)
      expect((Math.max(light, base) + 0.05) / (Math.min(light, base) + 0.05)).toBeGreaterThanOrEqual(3);
    expect([...lights].sort((a, b) => a - b)).toEqual(lights);
  });
  it.each([false, true])("have a text colour with contrast", (dark) =>
    colors(dark).forEach((color, index) => {
      const light = luminance(color) + 0.05;
      const contrast = inkOn(index / 40, dark) === "#000" ? light / 0.05 : 1.05 / light;
      expect(contrast).toBeGreaterThanOrEqual(4.5);
    }),
  );
});
