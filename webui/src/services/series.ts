import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { components } from "@/api/schema";
import { toNumber } from "@/format/number";
import { extended, type Series, timesOf, type XAxis } from "./seriesTail";
import { fetchSeries } from "./seriesTogether";
import type { MetricId } from "./trials";

export type { Series, XAxis };

export interface SeriesQuestion {
  /** The experiment whose changes make it stale; `many` for a comparison. */
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
    total: wire.total,
  };
}

export const seriesQuery = ({ experimentId, trialIds, metrics, x, start, end, maxPoints = 500 }: SeriesQuestion) =>
  queryOptions({
    queryKey: ["metrics", String(experimentId), "series", trialIds, metrics, x, start, end, maxPoints],
    queryFn: async ({ client, queryKey }) => {
      const body = {
        trialIds: [...trialIds],
        metrics: [...metrics],
        x,
        start: start ?? null,
        end: end ?? null,
        maxPoints,
      };
      const known = client.getQueryData<Series[]>(queryKey);
      const after = known && start === undefined && end === undefined ? timesOf(known) : {};
      if (known && Object.keys(after).length > 0) {
        const tail = (await fetchSeries({ ...body, after })).map(fromWire);
        const longer = extended(known, tail, x, 2 * maxPoints);
        if (longer) return longer;
      }
      return (await fetchSeries(body)).map(fromWire);
    },
    enabled: trialIds.length > 0 && metrics.length > 0,
    placeholderData: keepPreviousData,
  });
