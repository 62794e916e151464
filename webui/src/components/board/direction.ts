/** The searcher's metric, and the better direction of it and of other metrics. */
export interface Searcher {
  metric: string;
  smallerIsBetter: boolean;
  /** Directions of other metrics in the configuration. */
  goals?: Readonly<Record<string, Goal>>;
}

export type Goal = "minimize" | "maximize";
export type Better = "smaller" | "larger";

/**
 * Returns which values of a metric are better. This is known for the searcher's metric and for those in `metric_goals`
 * of the configuration; null for others. A name is not reliable: `val/top5`, `perplexity` and `wer` differ.
 */
export function betterOf(metric: string, searcher: Searcher | null): Better | null {
  if (searcher?.metric === metric) return searcher.smallerIsBetter ? "smaller" : "larger";
  const goal = new Map(Object.entries(searcher?.goals ?? {})).get(metric);
  return goal === undefined ? null : goal === "minimize" ? "smaller" : "larger";
}

/** Returns the searcher of an experiment's effective configuration. */
export function searcherOf(experiment: { searcherMetric: string; config?: unknown }): Searcher {
  const config = experiment.config as
    { searcher?: { smaller_is_better?: boolean }; metric_goals?: Record<string, Goal> } | undefined;
  return {
    metric: experiment.searcherMetric,
    smallerIsBetter: config?.searcher?.smaller_is_better !== false,
    goals: config?.metric_goals ?? {},
  };
}
