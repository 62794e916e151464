/** The searcher's metric, and whether smaller is better. */
export interface Searcher {
  metric: string;
  smallerIsBetter: boolean;
}

const GREATER_IS_BETTER = /acc|f1|auc|reward|score|precision|recall|bleu|map$/i;

/** True if smaller values of the metric are better: by the searcher for its own metric, else guessed from the name. */
export function isSmallerBetter(metric: string, searcher: Searcher | null): boolean {
  return searcher?.metric === metric ? searcher.smallerIsBetter : !GREATER_IS_BETTER.test(metric);
}

/** The searcher of an experiment's effective configuration. */
export function searcherOf(experiment: { searcherMetric: string; config?: unknown }): Searcher {
  const config = experiment.config as { searcher?: { smaller_is_better?: boolean } } | undefined;
  return { metric: experiment.searcherMetric, smallerIsBetter: config?.searcher?.smaller_is_better !== false };
}
