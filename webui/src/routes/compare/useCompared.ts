import { failureOf } from "@/api/problem";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { summariesQuery } from "@/services/trials";
import { chosenRowsQuery, comparedTrialIds } from "./chosen";
import { comparedOf } from "./runs";

/** Returns the compared runs in the order of their choice. An experiment is represented by its best trial. */
export function useCompared(experiments: readonly number[], trials: readonly number[]) {
  const rows = useQuery({ ...chosenRowsQuery(experiments), enabled: experiments.length > 0 });
  const ids = comparedTrialIds({ experiments, trials }, rows.data?.experiments ?? []);
  const summaries = useQuery(summariesQuery("many", ids, []));
  const compared = useMemo(
    () => comparedOf(ids, summaries.data ?? [], { trials }),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `ids` depends on these
    [summaries.data, rows.data, trials, experiments],
  );
  const isPending = (experiments.length > 0 && rows.isPending) || (ids.length > 0 && summaries.isPending);
  return {
    compared,
    missing: experiments.length + trials.length - compared.length,
    error: failureOf(rows, summaries),
    isPending,
  };
}
