import { describe, expect, it, vi } from "vitest";
import { fakeMaster, Refusal } from "@/testing/fakeMaster";
import { fetchSeries, type SeriesBody } from "./seriesTogether";

const SERIES = "POST /detent/series";

function body(name: string, more: Partial<SeriesBody> = {}): SeriesBody {
  return {
    trialIds: [1, 2],
    metrics: [{ group: "training", name }],
    x: "batches",
    start: null,
    end: null,
    maxPoints: 500,
    ...more,
  };
}

function master() {
  return fakeMaster({
    [SERIES]: ({ body: asked }) => ({
      missing: [],
      series: (asked as SeriesBody).metrics.map((metric) => ({ ...metric, trialId: 1 })),
    }),
  });
}

describe("series of several panels", () => {
  it("are fetched together, and each panel gets its own", async () => {
    const { of } = master();
    const answers = await Promise.all(["loss", "accuracy", "loss"].map((name) => fetchSeries(body(name))));
    expect(of(SERIES)).toHaveLength(1);
    expect(answers.map(([first]) => first?.name)).toEqual(["loss", "accuracy", "loss"]);
  });

  it("are fetched separately if their trials or ranges differ, or if they have too many curves", async () => {
    const { of } = master();
    const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
    const many = ["a", "b", "c", "d", "e"].map((name) => body(name, { trialIds: hundred, maxPoints: 100 }));
    await Promise.all(
      [body("loss"), body("loss", { trialIds: [3] }), body("loss", { start: 5 }), ...many].map(fetchSeries),
    );
    expect(of(SERIES).map((asked) => (asked.body as SeriesBody).metrics.length)).toEqual([1, 1, 1, 2, 2, 1]);
  });

  it("of many curves are fetched at once, before other requests of the page", async () => {
    const { of } = master();
    const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
    vi.useFakeTimers();
    await fetchSeries(body("loss", { trialIds: hundred, maxPoints: 200 }));
    vi.useRealTimers();
    expect(of(SERIES)).toHaveLength(1);
  });

  it("fail together, without those of other requests", async () => {
    const fake = master();
    fake.answers[SERIES] = ({ body: asked }) =>
      (asked as SeriesBody).trialIds[0] === 3 ? { missing: [], series: [] } : new Refusal(500, "no");
    const [first, second, third] = await Promise.allSettled([
      fetchSeries(body("a")),
      fetchSeries(body("b")),
      fetchSeries(body("a", { trialIds: [3] })),
    ]);
    expect([first?.status, second?.status, third?.status]).toEqual(["rejected", "rejected", "fulfilled"]);
  });
});
