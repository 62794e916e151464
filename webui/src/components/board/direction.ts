/** The searcher's metric, and whether smaller is better. */
export interface Searcher {
  metric: string;
  smallerIsBetter: boolean;
}

export type Better = "smaller" | "larger";

/**
 * Which values of a metric are better: known of the searcher's own metric, whose direction the configuration gives; null for
 * each other one. A name says nothing reliable: `val/top5`, `perplexity` and `wer` differ.
 */
export function betterOf(metric: string, searcher: Searcher | null): Better | null {
  if (searcher?.metric !== metric) return null;
  return searcher.smallerIsBetter ? "smaller" : "larger";
}

/** The searcher of an experiment's effective configuration. */
export function searcherOf(experiment: { searcherMetric: string; config?: unknown }): Searcher {
  const config = experiment.config as { searcher?: { smaller_is_better?: boolean } } | undefined;
  return { metric: experiment.searcherMetric, smallerIsBetter: config?.searcher?.smaller_is_better !== false };
}
