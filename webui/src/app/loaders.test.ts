import { QueryClient } from "@tanstack/react-query";
import { createMemoryRouter, type RouteObject } from "react-router";
import { describe, expect, it, vi } from "vitest";
import { fakeMaster, Refusal } from "@/testing/fakeMaster";
import { experimentOf, statusOf } from "@/testing/samples";
import { makeLoaders } from "./loaders";

type Page = keyof ReturnType<typeof makeLoaders>;

const SEARCH = "POST /detent/experiments/search";
const of = (id: number) => [`GET /api/v1/experiments/${id}`, `GET /detent/experiments/${id}/status`];

function master() {
  return fakeMaster({
    [SEARCH]: { total: 0, offset: 0, experiments: [], unknownColumns: [] },
    [of(7)[0]!]: { experiment: experimentOf() },
    [of(7)[1]!]: statusOf(),
    [of(8)[0]!]: new Refusal(404, "no experiment 8"),
    [of(8)[1]!]: new Refusal(404, "no experiment 8"),
  });
}

function open(page: Page, path: string, at: string, more: Partial<RouteObject> = {}) {
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
  const route = { path, ...makeLoaders(queries)[page], ...more } as RouteObject;
  return createMemoryRouter([route, { path: "*", element: null }], { initialEntries: [at] });
}

describe("loaders", () => {
  it("request an experiment while the code of its page is loading", async () => {
    const { asked } = master();
    const router = open("experiment", "/experiments/:experimentId/*", "/experiments/7/logs", {
      lazy: () => new Promise(() => undefined),
    });
    await vi.waitFor(() => expect(asked.map(({ line }) => line)).toEqual(of(7)));
    expect(router.state.initialized).toBe(false);
  });

  it("request nothing at a change of tab, and request another experiment, even a deleted one", async () => {
    const { asked } = master();
    const router = open("experiment", "/experiments/:experimentId/*", "/experiments/7");
    await vi.waitFor(() => expect(router.state.initialized).toBe(true));
    await router.navigate("/experiments/7/logs");
    await router.navigate("/experiments/8");
    await vi.waitFor(() => expect(asked.map(({ line }) => line)).toEqual([...of(7), ...of(8)]));
    expect(router.state.errors).toBeNull();
  });

  it.each([
    ["/trials/9/logs", ["limit=500"]],
    ["/trials/9/logs?line=40&level=ERROR", ["around=40&limit=500&levels=ERROR"]],
    ["/trials/9/curves", []],
  ])("of a trial at %s request the log that its page shows", async (at, pages) => {
    const { asked } = fakeMaster({ "GET /api/v1/trials/9": { trial: {} }, "GET /detent/trials/9/logs": { lines: [] } });
    const router = open("trial", "/trials/:trialId/*", at);
    await vi.waitFor(() => expect(router.state.initialized).toBe(true));
    const logs = asked.filter(({ line }) => line === "GET /detent/trials/9/logs");
    expect(logs.map(({ query }) => query.toString())).toEqual(pages);
  });

  it.each([
    ["/compare?trials=4,9", ["POST /detent/trials/summaries"]],
    ["/compare?experiments=7", [SEARCH]],
    ["/compare", []],
  ])("of a comparison at %s request its runs", async (at, first) => {
    const { asked } = fakeMaster({ [SEARCH]: { total: 0, offset: 0, experiments: [], unknownColumns: [] } });
    const router = open("compare", "/compare", at);
    await vi.waitFor(() => expect(router.state.initialized).toBe(true));
    await new Promise((done) => setTimeout(done));
    expect(asked.map(({ line }) => line)).toEqual(first);
  });

  it.each([
    ["/compare?trials=4,9&zoom=10..20", [{ trialIds: [4, 9], start: 10, end: 20 }]],
    ["/compare?trials=4,9&tab=config", []],
  ])("of a comparison at %s request its first curves while the code of its page is loading", async (at, series) => {
    const named = {
      metrics: [{ group: "validation", name: "loss", type: "number", count: 3 }],
      searcherMetric: "loss",
    };
    const { of: asked } = fakeMaster({
      "POST /detent/trials/summaries": {
        trials: [4, 9].map((trialId) => ({ trialId, experimentId: 7, hparams: {}, metrics: [] })),
      },
      "GET /detent/experiments/7/metric-names": named,
      "POST /detent/series": { series: [], missing: [] },
    });
    const router = open("compare", "/compare", at, { lazy: () => new Promise(() => undefined) });
    router.initialize();
    await vi.waitFor(() => expect(asked("GET /detent/experiments/7/metric-names")).toHaveLength(1));
    await new Promise((done) => setTimeout(done, 20));
    expect(asked("POST /detent/series").map(({ body }) => body)).toMatchObject(series);
    expect(router.state.initialized).toBe(false);
  });

  it.each([
    ["/?q=loss+%3C+1", 1],
    ["/?q=loss+%3C", 0],
    ["/?group=user", 0],
  ])("of the list at %s send %i requests", async (at, count) => {
    const { of: asked } = master();
    const router = open("list", "/", at);
    await vi.waitFor(() => expect(router.state.initialized).toBe(true));
    // A request is sent after its body was read.
    await new Promise((done) => setTimeout(done));
    expect(asked(SEARCH)).toHaveLength(count);
  });
});
