// @vitest-environment node
import { describe, expect, it } from "vitest";
import { axisOf, type Point, varying } from "./axes";
import { goodness } from "./shades";

describe("an axis", () => {
  it("goes by powers where values span more than two", () => {
    const axis = axisOf("lr", [0.001, 0.01, 0.1]);
    expect(axis.kind).toBe("log");
    expect(axis.place(0.01)).toBeCloseTo(0.5);
    expect(axis.few?.map((each) => each.title)).toEqual(["0.001", "0.01", "0.1"]);
  });
  it("of words sets them beside each other", () => expect(axisOf("o", ["sgd", "adam"]).place("sgd")).toBe(1));
  it("of mixed values takes them for words", () => expect(axisOf("x", [1, "a"]).kind).toBe("words"));
  it("has no place for what is missing", () => expect(axisOf("x", [1, 2]).place(undefined)).toBeNull());
  it("of one value still has a place", () => expect(axisOf("x", [5, 5]).place(5)).toBe(0));
});

it("what differs is found, whatever it is called", () => {
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

it("the best is 1, the worst 0, and what has no figure neither", () => {
  expect(goodness([3, 1, NaN, 2], true)).toEqual([0, 1, NaN, 0.5]);
  expect(goodness([3, 1], false)).toEqual([1, 0]);
});
