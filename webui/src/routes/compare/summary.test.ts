// @vitest-environment node
import { describe, expect, it } from "vitest";
import { betterOf } from "@/components/board/direction";
import type { TrialSummary } from "@/services/trials";
import { type Compared, comparedOf } from "./runs";
import { partShown, shownChoices, sortedPlaces, summaryChoices, summaryColumns, summaryMetrics } from "./summary";

const run = (trialId: number, hparams: Record<string, unknown>, smallerIsBetter = true): Compared => ({
  trialId,
  experimentId: trialId,
  name: `run ${trialId}`,
  state: "STATE_COMPLETED",
  chosenAs: "experiment",
  hparams,
  searcher: { metric: "figure", smallerIsBetter },
});

const summary = (trialId: number, name: string): TrialSummary => ({
  trialId,
  experimentId: trialId,
  experimentName: `run ${trialId}`,
  searcherMetric: "figure",
  smallerIsBetter: true,
  hparams: {},
  state: "STATE_COMPLETED",
  metrics: [{ group: "validation", name, last: 2, min: 1, max: 3, mean: 2, count: 5 }],
});

describe("columns of the summary", () => {
  it("are best and last of each metric, by its searcher, then the hyperparameters that differ", () => {
    const runs = [run(1, { lr: 0.1, same: 1 }), run(2, { lr: 0.2, same: 1 }, false), run(3, { same: 1 })];
    const choices = summaryChoices(runs, [{ group: "validation", name: "figure" }], "figure");
    const columns = summaryColumns(runs, choices, [summary(1, "figure"), summary(2, "figure")]);
    expect(columns.map(({ title, part, values }) => [part ? `${title} ${part}` : title, values])).toEqual([
      ["figure best", [1, 3, undefined]],
      ["figure last", [2, 2, undefined]],
      ["lr", [0.1, 0.2, undefined]],
    ]);
  });

  it("name the group if two metrics have one name", () => {
    const metrics = ["training", "validation"].map((group) => ({ group, name: "loss" }));
    const choices = summaryChoices([run(1, {})], metrics, "");
    expect(summaryColumns([run(1, {})], choices, []).map(({ title, part }) => `${title} ${part}`)).toEqual([
      "training loss last",
      "training loss min",
      "training loss max",
      "validation loss last",
      "validation loss min",
      "validation loss max",
    ]);
  });

  it("begin with the searcher's metric and exclude counters and metrics of the machine", () => {
    const names = [
      { group: "training", name: "loss" },
      { group: "validation", name: "epochs" },
      { group: "gpu", name: "memory" },
      { group: "validation", name: "val_loss" },
      { group: "training", name: "notes", type: "string" },
    ];
    expect(summaryMetrics(names, "val_loss").map(({ name }) => name)).toEqual(["val_loss", "loss"]);
  });
});

describe("a choice of the columns", () => {
  const names = Array.from({ length: 6 }, (_, index) => ({ group: "validation", name: `m${index}` }));
  const values = (add: number) =>
    Object.fromEntries(Array.from({ length: 22 }, (_, index) => [`h${index}`, index + add]));
  const choices = summaryChoices([run(1, values(0)), run(2, values(1))], names, "m3");

  it("shows the searcher's metric and a few others at first, with the total number", () => {
    const shown = shownChoices(choices, []);
    expect(shown.slice(0, 5).map(({ key }) => key)).toEqual([
      "validation.m3",
      "validation.m0",
      "validation.m1",
      "validation.m2",
      "hp.h0",
    ]);
    expect(partShown(choices, shown)).toBe("4 of 6 metrics, 20 of 22 hyperparameters");
    expect(partShown(choices, choices)).toBe("");
  });

  it("shows the columns of the address, in the order of the choices, and ignores unknown ones", () => {
    const shown = shownChoices(choices, ["hp.h21", "validation.m5", "hp.gone"]);
    expect(shown.map(({ key }) => key)).toEqual(["validation.m5", "hp.h21"]);
    expect(shownChoices(choices, ["hp.gone"])).toEqual(shownChoices(choices, []));
  });
});

describe("rows of the summary in order", () => {
  it("have numbers before words, and missing values last in both directions", () => {
    const values = [3, undefined, "b", 1, "NaN", null, 2];
    expect(sortedPlaces(values, false)).toEqual([3, 6, 0, 2, 4, 1, 5]);
    expect(sortedPlaces(values, true)).toEqual([0, 6, 3, 4, 2, 1, 5]);
  });
});

it("only the configuration defines the better direction, not the name", () => {
  const searcher = {
    metric: "figure",
    smallerIsBetter: true,
    goals: { "val/top5": "maximize", wer: "minimize" },
  } as const;
  expect(["val/top5", "wer", "figure", "loss", "constructor"].map((name) => betterOf(name, searcher))).toEqual([
    "larger",
    "smaller",
    "smaller",
    null,
    null,
  ]);
  expect(betterOf("loss", { metric: "loss", smallerIsBetter: false })).toBe("larger");
  expect(betterOf("val/top5", { metric: "val/top5", smallerIsBetter: true })).toBe("smaller");
  for (const name of ["accuracy", "loss", "val/top5", "wer"]) {
    expect(betterOf(name, null)).toBeNull();
    expect(betterOf(name, { metric: "figure", smallerIsBetter: true })).toBeNull();
  }
});

it("a metric has a best value if the configurations of all runs with values define its direction", () => {
  const goals = { "val/top5": "maximize" } as const;
  const runs = [1, 2, 3].map((id) => ({
    ...run(id, {}),
    searcher: { metric: "figure", smallerIsBetter: true, goals },
  }));
  const choices = summaryChoices(runs, [{ group: "validation", name: "val/top5" }], "figure");
  const summaries = [summary(1, "val/top5"), summary(2, "val/top5")];
  const parts = (compared: Compared[]) =>
    summaryColumns(compared, choices, summaries).map(({ part, values }) => [part, values]);
  const best = [
    ["best", [3, 3, undefined]],
    ["last", [2, 2, undefined]],
  ];
  expect(parts(runs)).toEqual(best);
  expect(parts([...runs.slice(0, 2), run(3, {})])).toEqual(best);
  expect(parts([runs[0]!, run(2, {}), run(3, {})]).map(([part]) => part)).toEqual(["last", "min", "max"]);
});

it("compared runs have the directions that the master read from their configurations", () => {
  const known = { ...summary(1, "val/top5"), metrics: summary(1, "val/top5").metrics };
  known.metrics[0]!.smallerIsBetter = false;
  const [compared] = comparedOf([1], [known], { trials: [] });
  expect(compared!.searcher.goals).toEqual({ "val/top5": "maximize" });
});

it("a metric that is not the searcher's of each run has no best value", () => {
  const runs = [run(1, {}), { ...run(2, {}), searcher: { metric: "val/top5", smallerIsBetter: false } }];
  const choices = summaryChoices(runs, [{ group: "validation", name: "val/top5" }], "val/top5");
  const columns = summaryColumns(runs, choices, [summary(1, "val/top5"), summary(2, "val/top5")]);
  expect(columns.map(({ part, values }) => [part, values])).toEqual([
    ["last", [2, 2]],
    ["min", [1, 1]],
    ["max", [3, 3]],
  ]);
});
