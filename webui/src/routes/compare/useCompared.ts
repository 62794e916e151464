import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { summariesQuery } from "@/services/trials";
import { chosenRowsQuery, MAX_RUNS } from "./chosen";
import type { Compared } from "./runs";

/** Experiments stand for their best trial. In the order in which they were chosen. */
export function useCompared(experiments: readonly number[], trials: readonly number[]) {
  const rows = useQuery({ ...chosenRowsQuery(experiments), enabled: experiments.length > 0 });
  const byId = useMemo(() => new Map((rows.data?.experiments ?? []).map((row) => [row.id, row])), [rows.data]);
  const fromExperiments = experiments
    .map((id) => byId.get(id)?.trialId)
    .filter((id): id is number => typeof id === "number");
  const ids = [...new Set([...fromExperiments, ...trials])].slice(0, MAX_RUNS);
  const summaries = useQuery(summariesQuery("many", ids, []));
  const compared = useMemo(() => {
    const found: Compared[] = [];
    for (const trialId of ids) {
      const summary = summaries.data?.find((each) => each.trialId === trialId);
      if (!summary) continue;
      found.push({
        trialId,
        experimentId: summary.experimentId,
        name: summary.experimentName,
        state: summary.state,
        chosenAs: trials.includes(trialId) ? "trial" : "experiment",
        hparams: summary.hparams,
        searcher: { metric: summary.searcherMetric, smallerIsBetter: summary.smallerIsBetter },
      });
    }
    return found;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `ids` is made of these
  }, [summaries.data, rows.data, trials, experiments]);
  const isPending = (experiments.length > 0 && rows.isPending) || (ids.length > 0 && summaries.isPending);
  return {
    compared,
    missing: experiments.length + trials.length - compared.length,
    error: rows.error ?? summaries.error,
    isPending,
  };
}
