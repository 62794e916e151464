import type { Searcher } from "@/components/board/direction";
import type { Run } from "@/components/board/lines";
import { toNumber } from "@/format/number";
import type { Trial } from "@/services/trials";

/** Returns the trials with the best values of the searcher's metric, as runs of a chart, by their ids. Pure. */
export function bestTrials(trials: readonly Trial[], { smallerIsBetter }: Searcher, limit: number): Run[] {
  const value = (metric: unknown) => {
    const number = toNumber(metric);
    return Number.isNaN(number) ? Infinity : (smallerIsBetter ? 1 : -1) * number;
  };
  return [...trials]
    .sort((a, b) => {
      const [one, other] = [value(a.searcherMetricValue), value(b.searcherMetricValue)];
      return one === other ? a.id - b.id : one - other;
    })
    .slice(0, limit)
    .sort((a, b) => a.id - b.id)
    .map((trial) => ({ trialId: trial.id, label: `trial ${trial.id}` }));
}
