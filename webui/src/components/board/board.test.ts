import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Series } from "@/services/series";
import { strokeOf } from "../charts/palette";
import { type BoardState, readBoard, writeBoard } from "./boardState";
import { linesOf, strokesOf } from "./lines";
import { placed } from "./marks";
import { panelsOf } from "./panels";
import { isProfile } from "./profile";

describe("the state of a board", () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true });
  const state: fc.Arbitrary<Omit<BoardState, "x">> = fc.record({
    smoothing: fc.double({ min: 0, max: 0.99, noNaN: true }).map((value) => value + 0),
    logX: fc.boolean(),
    logY: fc.boolean(),
    metrics: fc.array(fc.string()),
    zoom: fc.option(
      fc.tuple(number, number).map(([a, b]): [number, number] => [a + 0, b + 0]),
      { nil: null },
    ),
  });

  it("is stored in the address and read back unchanged", () => {
    fc.assert(
      fc.property(fc.constantFrom<BoardState["x"]>("batches", "epochs", "time"), state, (x, rest) => {
        const address = writeBoard(writeBoard(new URLSearchParams("tab=curves"), { x }), rest).toString();
        expect(readBoard(new URLSearchParams(address))).toEqual({ x, ...rest });
        expect(address).toContain("tab=curves");
      }),
    );
  });

  it("leaves defaults out of the address, and has no range of steps on another axis", () => {
    const zoomed = writeBoard(new URLSearchParams(), { zoom: [1, 2], smoothing: 0.5, logY: true });
    expect(writeBoard(zoomed, { x: "time" }).has("zoom")).toBe(false);
    expect(writeBoard(zoomed, { zoom: null, smoothing: 0, logY: false, metrics: [] }).toString()).toBe("");
  });

  it.each(["x=sideways", "smooth=7", "smooth=many", "zoom=1", "zoom=a..b", "zoom=1..Infinity"])(
    "uses the defaults if the address has %s",
    (address) => {
      expect(readBoard(new URLSearchParams(address))).toEqual(readBoard(new URLSearchParams()));
    },
  );
});

describe("panels", () => {
  const metric = (group: string, name: string, type = "number") => ({ group, name, type });

  it("show validation over training, also if the names have a validation prefix", () => {
    const panels = panelsOf(
      [
        metric("training", "loss"),
        metric("validation", "validation_loss"),
        metric("validation", "accuracy"),
        metric("training", "accuracy"),
      ],
      "validation_loss",
    );
    expect(panels).toEqual([
      {
        name: "loss",
        metrics: [
          { group: "training", name: "loss" },
          { group: "validation", name: "validation_loss" },
        ],
      },
      {
        name: "accuracy",
        metrics: [
          { group: "validation", name: "accuracy" },
          { group: "training", name: "accuracy" },
        ],
      },
    ]);
  });

  it("keep similar names and other groups apart, leave out text, and put counters last", () => {
    const names = [
      metric("validation", "batches"),
      metric("validation", "val_loss"),
      metric("gpu", "loss"),
      metric("training", "notes", "string"),
      metric("training", "lr"),
    ];
    expect(panelsOf(names, "").map(({ name }) => name)).toEqual(["val_loss", "lr", "gpu/loss", "batches"]);
  });

  it("accept any name", () => {
    const panels = panelsOf(
      [metric("training", "__proto__"), metric("validation", "__proto__"), metric("training", "constructor")],
      "",
    );
    expect(panels.map(({ name, metrics }) => [name, metrics.length])).toEqual([
      ["__proto__", 2],
      ["constructor", 1],
    ]);
  });

  it("handle two thousand names at once", () => {
    const names = Array.from({ length: 2000 }, (_, index) =>
      metric(index % 2 ? "training" : "validation", `layer${index >> 1}/gradient`),
    );
    const start = performance.now();
    expect(panelsOf(names, "layer7/gradient")[0]?.name).toBe("layer7/gradient");
    expect(performance.now() - start).toBeLessThan(500);
  });
});

describe("lines", () => {
  const series = (
    trialId: number,
    group: string,
    values: number[],
    batches = values.map((_, index) => index),
  ): Series => ({
    trialId,
    group,
    name: "loss",
    batches,
    times: batches,
    epochs: null,
    values,
    count: values.length,
    total: values.length,
  });
  const usual = { x: "batches" as const, smoothing: 0, banded: false };
  const runs = [1, 2, 3].map((trialId) => ({
    trialId,
    label: `trial ${trialId}`,
    group: trialId < 3 ? "lr=1" : "lr=2",
  }));

  it("of several runs have the colour of the run and the dash of the group", () => {
    const lines = linesOf(
      [series(1, "training", [1]), series(1, "validation", [1]), series(2, "training", [1])],
      runs,
      usual,
    );
    expect(lines.map(({ label }) => label)).toEqual(["trial 1 training", "trial 1 validation", "trial 2 training"]);
    const [one, over, two] = lines.map(({ stroke }) => stroke);
    expect(one?.color).toBe(over?.color);
    expect(one?.dash).not.toEqual(over?.dash);
    expect(two?.color).not.toBe(one?.color);
  });

  it("of one run have its colour, and the dash and name of the group", () => {
    const groups = ["training", "validation", "test", "held_out"];
    const lines = linesOf(
      groups.map((group) => series(1, group, [1])),
      runs.slice(0, 1),
      usual,
    );
    expect(lines.map(({ label }) => label)).toEqual(groups);
    expect(new Set(lines.map(({ stroke }) => stroke.color))).toEqual(new Set([strokeOf(1).color]));
    expect(new Set(lines.map(({ stroke }) => stroke.dash?.join()))).toHaveProperty("size", 4);
  });

  it("of a run have one colour in any comparison; runs of the same colour have different dashes", () => {
    const drawnWith = (...ids: number[]) => {
      const lines = linesOf(
        ids.map((id) => series(id, "validation", [1])),
        ids.map((trialId) => ({ trialId, label: `trial ${trialId}` })),
        usual,
      );
      return new Map(lines.map(({ key, stroke }) => [Number(key.split("/")[0]), stroke]));
    };
    const alone = drawnWith(11).get(11)!;
    for (const ids of [
      [11, 12],
      [9, 10, 11],
      [3, 11],
      [11, 3, 19],
    ])
      expect(drawnWith(...ids).get(11)!.color).toBe(alone.color);
    const three = [...drawnWith(3, 11, 19).values()];
    expect(new Set(three.map(({ color }) => color)).size).toBe(1);
    expect(new Set(three.map(({ dash }) => String(dash))).size).toBe(3);
  });

  it("belong only to the requested runs, and have a point on the axis", () => {
    expect(linesOf([series(9, "training", [1]), series(1, "training", [])], runs, usual)).toEqual([]);
    expect(linesOf([series(1, "training", [1])], runs, { ...usual, x: "epochs" })).toEqual([]);
  });

  it("that are smoothed keep the reported values behind them", () => {
    const [line] = linesOf([series(1, "training", [0, 10])], runs, { ...usual, smoothing: 0.9 });
    expect(line?.raw).toEqual([0, 10]);
    expect(line?.y[1]).toBeLessThan(10);
  });

  it("become bands of runs that differ only by their seed", () => {
    const bands = linesOf(
      [series(1, "training", [1, 4]), series(2, "training", [3, 0]), series(3, "training", [7, 7])],
      runs,
      { ...usual, banded: true },
    );
    expect(bands.map(({ label, y, band }) => [label, y, band?.least, band?.greatest])).toEqual([
      ["lr=1 (2)", [2, 2], [1, 0], [3, 4]],
      ["lr=2 (1)", [7, 7], [7, 7], [7, 7]],
    ]);
    const strokeFor = strokesOf(runs, true);
    expect(bands.map(({ stroke }) => stroke)).toEqual([strokeFor(runs[1]!), strokeFor(runs[2]!)]);
    expect(bands.map(({ stroke }) => stroke.color)).toEqual([strokeOf(1).color, strokeOf(3).color]);
  });
});

describe("marks", () => {
  const mark = (steps: number) => ({
    kind: "pause" as const,
    text: `at ${steps}`,
    time: "2026-11-21T12:00:00Z",
    steps,
    runId: 1,
  });
  const over = (batches: number[], epochs: number[] | null): Series => ({
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
  const places = (...given: Parameters<typeof placed>) => placed(...given).map(({ x }) => x);

  it("are placed at their step, their time, or the epoch between the nearest points", () => {
    expect(places([mark(25)], "batches", [])).toEqual([25]);
    expect(places([mark(25)], "time", [])).toEqual([Date.parse("2026-11-21T12:00:00Z") / 1000]);
    expect(
      places([mark(10), mark(25), mark(30)], "epochs", [over([20, 10], [1, 0.5]), over([30, 40], [1.5, NaN])]),
    ).toEqual([0.5, 1.25, 1.5]);
  });

  it("of pauses have a duration over time until the pause is over", () => {
    const until = "2026-11-21T12:00:30Z";
    expect(
      placed([{ ...mark(25), until }, mark(25), { ...mark(25), kind: "restart" }], "time", []).map(
        (each) => each.until,
      ),
    ).toEqual([Date.parse(until) / 1000, Infinity, undefined]);
    expect(placed([{ ...mark(25), until }], "batches", [])[0]).not.toHaveProperty("until");
  });

  it("have no epoch outside the drawn range, and none if none was reported", () => {
    expect(places([mark(5), mark(35)], "epochs", [over([10, 30], [1, 3])])).toEqual([]);
    expect(places([mark(5)], "epochs", [over([5], null)])).toEqual([]);
  });
});

it("metrics of the machine are distinguished from those of the model by their group", () => {
  for (const group of ["cpu", "memory", "gpu", "system_metrics"]) expect(isProfile(group)).toBe(true);
  for (const group of ["training", "validation", "cpu_bound", "inference"]) expect(isProfile(group)).toBe(false);
});
