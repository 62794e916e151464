// @vitest-environment node
import { describe, expect, it } from "vitest";
import type { Series } from "@/services/series";
import { axesOf } from "./axes";
import { panelsOf, sectionsOf } from "./panels";

const panels = (...names: string[]) =>
  panelsOf(
    names.map((name) => ({ group: "training", name })),
    "",
  );
const shape = (...names: string[]) =>
  sectionsOf(panels(...names)).map(({ title, panels: members, isOpen }) => [
    title,
    members.map(({ name }) => name),
    isOpen,
  ]);

describe("sections of a board", () => {
  it("are named by the part before the first slash or dot; counters are last and closed", () =>
    expect(shape("gen/loss", "gen/lr", "disc.a", "disc.b", "epochs", "loss", "batches", "lonely/one")).toEqual([
      ["disc", ["disc.a", "disc.b"], true],
      ["gen", ["gen/loss", "gen/lr"], true],
      ["Metrics", ["lonely/one", "loss"], true],
      ["Counters", ["batches", "epochs"], false],
    ]));

  it("are closed after the first dozen panels", () => {
    const names = ["a", "b", "c"].flatMap((prefix) => Array.from({ length: 8 }, (_, index) => `${prefix}/${index}`));
    expect(sectionsOf(panels(...names)).map(({ isOpen }) => isOpen)).toEqual([true, true, false]);
  });
});

describe("axes of a board", () => {
  const series = (batches: number[], epochs: number[] | null): Series => ({
    trialId: 1,
    group: "training",
    name: "loss",
    batches,
    times: batches,
    epochs,
    values: batches,
    count: batches.length,
    total: batches.length,
  });
  it("are those over which there are points", () => {
    expect(axesOf([series([1, 2], null)])).toEqual(["batches", "time"]);
    expect(axesOf([series([1, 2], null), series([1], [0.5])])).toEqual(["batches", "epochs", "time"]);
    expect(axesOf([series([0, 0], null)])).toEqual(["time"]);
    expect(axesOf([series([1], [NaN])])).toEqual(["batches", "time"]);
  });
});
