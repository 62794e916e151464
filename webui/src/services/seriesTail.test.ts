import { QueryClient } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";
import { fakeMaster } from "@/testing/fakeMaster";
import { type Series, seriesQuery } from "./series";
import { extended, timesOf } from "./seriesTail";

const POST = "POST /detent/series";

function series(batches: number[], more: Partial<Series> = {}): Series {
  const values = batches.map((step) => step / 10);
  const times = batches.map((step) => 100 + step);
  const [count, total] = [batches.length, batches.length];
  return { trialId: 1, group: "training", name: "loss", batches, times, epochs: null, values, count, total, ...more };
}

describe("a series with new points", () => {
  it("has the earlier points and the new ones", () => {
    const longer = extended([series([1, 2, 3])], [series([3, 4, 5], { total: 5 })], "batches", 100);
    expect(longer).toEqual([series([1, 2, 3, 4, 5])]);
  });

  it("stays the same without new points", () => {
    const known = series([1, 2, 3]);
    expect(extended([known], [series([3], { total: 3 })], "batches", 100)![0]).toBe(known);
  });

  it("begins with the first points of a metric that had none", () => {
    expect(extended([series([])], [series([7, 8])], "batches", 100)).toEqual([series([7, 8])]);
  });

  it("counts points that were removed by thinning", () => {
    const known = series([1, 30], { count: 30, total: 30 });
    const [longer] = extended([known], [series([30, 31], { total: 31 })], "batches", 100)!;
    expect([longer!.batches, longer!.count, longer!.total]).toEqual([[1, 30, 31], 31, 31]);
  });

  it("leaves out points without an epoch if the epoch is its x", () => {
    const known = series([1, 2], { epochs: [0.1, 0.2] });
    const tail = series([2, 3, 4], { epochs: [0.2, NaN, 0.4], total: 4 });
    const [longer] = extended([known], [tail], "epochs", 100)!;
    expect([longer!.epochs, longer!.count, longer!.total]).toEqual([[0.1, 0.2, 0.4], 3, 4]);
  });

  it.each([
    ["a restart has removed the last known point", [series([1, 2, 3])], [series([4], { total: 3 })]],
    ["the last known point is gone and another came late", [series([1, 2, 3])], [series([4], { total: 4 })]],
    ["a restart has replaced points before", [series([1, 2, 3])], [series([3, 4], { total: 3 })]],
    ["a point came late", [series([1, 2, 5])], [series([5, 6], { total: 5 })]],
    ["points were thinned", [series([1])], [series([1, 9], { count: 9, total: 9 })]],
    ["steps go back", [series([5])], [series([5, 3], { times: [105, 106], total: 2 })]],
    ["there are too many points", [series([1, 2, 3])], [series([3, 4, 5, 6, 7], { total: 7 })]],
    ["a trial is gone", [series([1]), series([1], { trialId: 2 })], [series([1])]],
  ])("is fetched again if %s", (_, known, tail) => {
    expect(extended(known, tail, "batches", 6)).toBeNull();
  });

  it("is fetched from the newest point that all series of its trial have", () => {
    const known = [
      series([1, 2]),
      series([1], { name: "lr" }),
      series([9], { trialId: 2 }),
      series([], { trialId: 3 }),
    ];
    expect(timesOf(known)).toEqual({ 1: 101, 2: 109 });
  });
});

describe("the query of a series", () => {
  const question = {
    experimentId: 7,
    trialIds: [1],
    metrics: [{ group: "training", name: "loss" }],
    x: "batches",
  } as const;

  it("requests later points the second time, and all of them if they do not fit", async () => {
    const client = new QueryClient();
    const master = fakeMaster({ [POST]: { series: [series([1, 2, 3])], missing: [] } });
    const afters = () => master.of(POST).map(({ body }) => (body as { after?: unknown }).after ?? null);
    await client.fetchQuery(seriesQuery(question));
    master.answers[POST] = { series: [series([3, 4], { total: 4 })], missing: [] };
    expect(await client.fetchQuery(seriesQuery(question))).toEqual([series([1, 2, 3, 4])]);
    expect(afters()).toEqual([null, { 1: 103 }]);
    master.answers[POST] = { series: [series([2])], missing: [] };
    expect(await client.fetchQuery(seriesQuery(question))).toEqual([series([2])]);
    expect(afters()).toEqual([null, { 1: 103 }, { 1: 104 }, null]);
  });

  it("of a range requests that range each time", async () => {
    const client = new QueryClient();
    const master = fakeMaster({ [POST]: { series: [series([1, 2])], missing: [] } });
    await client.fetchQuery(seriesQuery({ ...question, start: 0, end: 9 }));
    await client.fetchQuery(seriesQuery({ ...question, start: 0, end: 9 }));
    expect(master.of(POST).map(({ body }) => (body as { after?: unknown }).after ?? null)).toEqual([null, null]);
  });
});
