import type { QueryClient } from "@tanstack/react-query";
import { readBoard } from "@/components/board/boardState";
import { firstQuestion } from "@/components/board/firstQuestion";
import { seriesQuery } from "@/services/series";
import { experimentMetricNamesQuery, summariesQuery } from "@/services/trials";
import { chosenRowsQuery, chosenRuns, comparedTrialIds, DISPLAY_LIMIT } from "./chosen";
import { mergedNames, namingExperiments } from "./metricNames";
import { comparedOf } from "./runs";

/**
 * Prefetches the curves of the first panel and the data that they need: the runs and the names of their metrics. The
 * page has the same queries; here none of them waits for the code of the page or for a rendered part.
 */
export async function prefetchCurves(queries: QueryClient, params: URLSearchParams): Promise<void> {
  const chosen = chosenRuns(params);
  const found =
    chosen.experiments.length > 0 ? await queries.query(chosenRowsQuery(chosen.experiments)) : { experiments: [] };
  const ids = comparedTrialIds(chosen, found.experiments);
  if (ids.length === 0) return;
  const compared = comparedOf(ids, await queries.query(summariesQuery("many", ids, [])), chosen).slice(
    0,
    DISPLAY_LIMIT,
  );
  const names = await Promise.all(
    namingExperiments(compared).map((id) => queries.query(experimentMetricNamesQuery(id))),
  );
  const trialIds = compared.map((run) => run.trialId);
  const question = firstQuestion(
    mergedNames(names),
    names[0]?.searcherMetric ?? "",
    "many",
    trialIds,
    readBoard(params),
  );
  if (question && !params.has("tab")) await queries.query(seriesQuery(question));
}
