import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { wireFilter } from "@/filter/wire";
import { type Row, rowsQuery } from "@/services/columns";
import { summariesQuery } from "@/services/trials";
import type { Compared } from "./runs";

function rowsOf(ids: readonly number[]) {
  const children = ids.map((id) => ({ kind: "field" as const, column: "id", operator: "=" as const, value: id }));
  const filter = wireFilter({ kind: "group", conjunction: "or", children }, true);
  return rowsQuery({ filter, sort: "id=asc", showArchived: true }, [], 0);
}

/** Experiments stand for their best trial. In the order in which they were chosen. */
export function useCompared(experiments: readonly number[], trials: readonly number[]) {
  const rows = useQuery({ ...rowsOf(experiments), enabled: experiments.length > 0 });
  const byId = useMemo(() => new Map((rows.data?.experiments ?? []).map((row) => [row.id, row])), [rows.data]);
  const fromExperiments = experiments
    .map((id) => byId.get(id)?.trialId)
    .filter((id): id is number => typeof id === "number");
  const ids = [...new Set([...fromExperiments, ...trials])].slice(0, 500);
  const summaries = useQuery(summariesQuery("many", ids, []));
  const others = [...new Set((summaries.data ?? []).map(({ experimentId }) => experimentId))].filter(
    (id) => !experiments.includes(id),
  );
  // Trials that were chosen themselves: what their experiments are called and look at.
  const { data: more } = useQuery({ ...rowsOf(others), enabled: others.length > 0 });
  const compared = useMemo(() => {
    const othersById = new Map((more?.experiments ?? []).map((row) => [row.id, row]));
    const found: Compared[] = [];
    for (const trialId of ids) {
      const summary = summaries.data?.find((each) => each.trialId === trialId);
      if (!summary) continue;
      const row: Row | undefined = byId.get(summary.experimentId) ?? othersById.get(summary.experimentId);
      found.push({
        trialId,
        experimentId: summary.experimentId,
        name: row?.name ?? `experiment ${summary.experimentId}`,
        state: summary.state,
        chosenAs: trials.includes(trialId) ? "trial" : "experiment",
        hparams: summary.hparams,
        searcher: row ? { metric: row.searcherMetric, smallerIsBetter: row.smallerIsBetter } : null,
      });
    }
    return found;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `ids` is made of these
  }, [summaries.data, byId, more, trials, experiments]);
  const isPending = (experiments.length > 0 && rows.isPending) || (ids.length > 0 && summaries.isPending);
  return {
    compared,
    missing: experiments.length + trials.length - compared.length,
    error: rows.error ?? summaries.error,
    isPending,
  };
}
