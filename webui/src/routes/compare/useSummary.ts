import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSearchParams } from "react-router";
import { summariesQuery } from "@/services/trials";
import type { Compared } from "./runs";
import { type MetricName, shownChoices, summaryChoices, summaryColumns } from "./summary";

/** Parameter of the address with a chosen column, repeated for each. */
const COLUMN = "col";

/** Returns the columns of the summary, and the choice among all, which is stored in the address. */
export function useSummary(compared: readonly Compared[], names: readonly MetricName[], searcherMetric: string) {
  const [params, setParams] = useSearchParams();
  const choices = useMemo(() => summaryChoices(compared, names, searcherMetric), [compared, names, searcherMetric]);
  const shown = useMemo(() => shownChoices(choices, params.getAll(COLUMN)), [choices, params]);
  const metrics = useMemo(() => shown.flatMap(({ metric }) => (metric ? [metric] : [])), [shown]);
  const trialIds = useMemo(() => compared.map((run) => run.trialId), [compared]);
  const { data: summaries, isLoading } = useQuery({
    ...summariesQuery("many", trialIds, metrics),
    enabled: trialIds.length > 0 && metrics.length > 0,
  });
  const columns = useMemo(() => summaryColumns(compared, shown, summaries ?? []), [compared, shown, summaries]);
  const choose = (keys: string[]) =>
    setParams(
      (now) => {
        const next = new URLSearchParams(now);
        next.delete(COLUMN);
        for (const key of keys) next.append(COLUMN, key);
        return next;
      },
      { replace: true, preventScrollReset: true },
    );
  return { choices, shown, columns, choose, isLoading };
}
