/** The searcher's metric, and which values of it and of other metrics are better. */
export interface Searcher {
  metric: string;
  smallerIsBetter: boolean;
  /** What the configuration says of other metrics. */
  goals?: Readonly<Record<string, Goal>>;
}

export type Goal = "minimize" | "maximize";
export type Better = "smaller" | "larger";

/**
 * Which values of a metric are better: known of the searcher's own metric and of those that `metric_goals` of the
 * configuration names; null for each other one. A name says nothing reliable: `val/top5`, `perplexity` and `wer` differ.
 */
export function betterOf(metric: string, searcher: Searcher | null): Better | null {
  if (searcher?.metric === metric) return searcher.smallerIsBetter ? "smaller" : "larger";
  const goal = new Map(Object.entries(searcher?.goals ?? {})).get(metric);
  return goal === undefined ? null : goal === "minimize" ? "smaller" : "larger";
}

/** The searcher of an experiment's effective configuration. */
export function searcherOf(experiment: { searcherMetric: string; config?: unknown }): Searcher {
  const config = experiment.config as
    { searcher?: { smaller_is_better?: boolean }; metric_goals?: Record<string, Goal> } | undefined;
  return {
    metric: experiment.searcherMetric,
    smallerIsBetter: config?.searcher?.smaller_is_better !== false,
    goals: config?.metric_goals ?? {},
  };
}
