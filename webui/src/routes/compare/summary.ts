import { isSmallerBetter } from "@/components/board/direction";
import { isCounter, panelsOf } from "@/components/board/panels";
import { isProfile } from "@/components/board/profile";
import { toNumber } from "@/format/number";
import { flatten } from "@/format/nested";
import type { MetricId, TrialSummary } from "@/services/trials";
import type { Compared } from "./runs";

const MAX_METRICS = 4;
const MAX_HYPERPARAMETERS = 20;

/** One column of the summary, with a value for each run. */
export interface SummaryColumn {
  key: string;
  title: string;
  /** Of a metric: its best or its last value. */
  part?: "best" | "last";
  kind: "metric" | "hyperparameter";
  values: unknown[];
}

export type MetricName = MetricId & { type?: string };

/** The metrics of the summary: the searcher's first, as the curves are; no counters and nothing of the machine. */
export function summaryMetrics(names: readonly MetricName[], searcherMetric: string): MetricId[] {
  const model = names.filter(({ group, name }) => !isProfile(group) && !isCounter(name));
  const metrics = panelsOf(model, searcherMetric).flatMap((panel) => panel.metrics);
  const isSearchers = ({ group, name }: MetricId) => group === "validation" && name === searcherMetric;
  return [...metrics.filter(isSearchers), ...metrics.filter((each) => !isSearchers(each))].slice(0, MAX_METRICS);
}

/** Best and last of each metric, then what differs of the hyperparameters. Pure. */
export function summaryColumns(
  runs: readonly Compared[],
  metrics: readonly MetricId[],
  summaries: readonly TrialSummary[],
): SummaryColumn[] {
  const byTrial = new Map(summaries.map((summary) => [summary.trialId, summary]));
  const names = metrics.map(({ name }) => name);
  const found: SummaryColumn[] = [];
  for (const { group, name } of metrics) {
    const title = names.filter((each) => each === name).length > 1 ? `${group} ${name}` : name;
    const of = runs.map((run) =>
      byTrial.get(run.trialId)?.metrics.find((each) => each.group === group && each.name === name),
    );
    const best = of.map((each, index) => (isSmallerBetter(name, runs[index]!.searcher) ? each?.min : each?.max));
    const key = `${group}\u0000${name}`;
    found.push({ key: `${key}\u0000best`, title, part: "best", kind: "metric", values: best });
    found.push({
      key: `${key}\u0000last`,
      title,
      part: "last",
      kind: "metric",
      values: of.map((each) => each?.last),
    });
  }
  return [...found, ...differingHyperparameters(runs)];
}

function differingHyperparameters(runs: readonly Compared[]): SummaryColumn[] {
  const flat = runs.map((run) => flatten(run.hparams));
  const names = [...new Set(flat.flatMap((each) => Object.keys(each)))];
  const differs = (name: string) => new Set(flat.map((each) => JSON.stringify(each[name]))).size > 1;
  return names
    .filter(differs)
    .slice(0, MAX_HYPERPARAMETERS)
    .map((name) => ({
      key: `hp\u0000${name}`,
      title: name,
      kind: "hyperparameter",
      values: flat.map((each) => each[name]),
    }));
}

/** The places of the values in order: numbers, then words, then what has none, whichever way. Pure. */
export function sortedPlaces(values: readonly unknown[], descending: boolean): number[] {
  const rank = (value: unknown) => (value === null || value === undefined ? 2 : Number.isNaN(toNumber(value)) ? 1 : 0);
  const order = (a: unknown, b: unknown) =>
    rank(a) === 0 ? toNumber(a) - toNumber(b) : String(a).localeCompare(String(b), "en", { numeric: true });
  return values
    .map((_, index) => index)
    .sort((a, b) => {
      const [one, other] = [values[a], values[b]];
      if (rank(one) !== rank(other)) return rank(one) - rank(other);
      return rank(one) === 2 ? a - b : (descending ? -1 : 1) * order(one, other) || a - b;
    });
}
