// @vitest-environment node
import { describe, expect, it } from "vitest";
import { importanceOf, MIN_TRIALS } from "./importance";

const grid = Array.from({ length: 60 }, (_, index) => [index % 6, Math.floor(index / 6), (index * 7) % 5]);

describe("importance", () => {
  it("finds the hyperparameter that decides", () => {
    const found = importanceOf(
      ["lr", "width", "noise"],
      grid,
      grid.map(([lr, width]) => 3 * (lr ?? 0) ** 2 + 0.3 * (width ?? 0)),
    );
    expect(found[0]!.name).toBe("lr");
    expect(found[0]!.share).toBeGreaterThan(0.6);
    expect(found.find(({ name }) => name === "noise")!.share).toBeLessThan(0.1);
    expect(found.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });

  it("is the same each time", () => {
    const metric = grid.map(([lr]) => lr ?? 0);
    expect(importanceOf(["a", "b", "c"], grid, metric)).toEqual(importanceOf(["a", "b", "c"], grid, metric));
  });

  it("is empty for few trials, or for trials without a metric", () => {
    expect(
      importanceOf(
        ["a"],
        grid.slice(0, MIN_TRIALS - 1).map(([a]) => [a ?? 0]),
        grid.slice(0, MIN_TRIALS - 1).map(() => 1),
      ),
    ).toEqual([]);
    expect(
      importanceOf(
        ["a", "b", "c"],
        grid,
        grid.map(() => NaN),
      ),
    ).toEqual([]);
  });
});
