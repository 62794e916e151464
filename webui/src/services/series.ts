import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { components } from "@/api/schema";
import { toNumber } from "@/format/number";
import { fetchSeries } from "./seriesTogether";
import type { MetricId } from "./trials";

export type XAxis = "batches" | "epochs" | "time";

/** One line of a plot: as many x as y; y may be NaN or infinite. */
export interface Series {
  trialId: number;
  group: string;
  name: string;
  batches: number[];
  /** Unix seconds. */
  times: number[];
  epochs: number[] | null;
  values: number[];
  /** Points before thinning. */
  count: number;
}

export interface SeriesQuestion {
  /** Whose changes make it stale; `many` for a comparison. */
  experimentId: number | "many";
  trialIds: readonly number[];
  metrics: readonly MetricId[];
  x: XAxis;
  start?: number | undefined;
  end?: number | undefined;
  maxPoints?: number;
}

function fromWire(wire: components["schemas"]["Series"]): Series {
  return {
    trialId: wire.trialId,
    group: wire.group,
    name: wire.name,
    batches: wire.batches,
    times: wire.times,
    epochs: wire.epochs ? wire.epochs.map((epoch) => epoch ?? NaN) : null,
    values: wire.values.map(toNumber),
    count: wire.count,
  };
}

export const seriesQuery = ({ experimentId, trialIds, metrics, x, start, end, maxPoints = 500 }: SeriesQuestion) =>
  queryOptions({
    queryKey: ["metrics", String(experimentId), "series", trialIds, metrics, x, start, end, maxPoints],
    queryFn: async () => {
      const body = {
        trialIds: [...trialIds],
        metrics: [...metrics],
        x,
        start: start ?? null,
        end: end ?? null,
        maxPoints,
      };
      return (await fetchSeries(body)).map(fromWire);
    },
    enabled: trialIds.length > 0 && metrics.length > 0,
    placeholderData: keepPreviousData,
  });
