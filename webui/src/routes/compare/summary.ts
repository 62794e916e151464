import { betterOf } from "@/components/board/direction";
import { isCounter, panelsOf } from "@/components/board/panels";
import { isProfile } from "@/components/board/profile";
import { toNumber } from "@/format/number";
import { flatten } from "@/format/nested";
import type { MetricId, TrialSummary } from "@/services/trials";
import type { Compared } from "./runs";

const DEFAULT_METRICS = 4;
const DEFAULT_HYPERPARAMETERS = 20;

/** A metric (some of its values) or a hyperparameter that differs, as a choice of the summary. */
export interface SummaryChoice {
  /** Key in the address. */
  key: string;
  title: string;
  kind: "metric" | "hyperparameter";
  metric?: MetricId;
}

/** One column of the summary, with a value for each run. */
export interface SummaryColumn {
  key: string;
  title: string;
  /** The value of a metric that is shown. */
  part?: "best" | "last" | "min" | "max";
  kind: "metric" | "hyperparameter";
  values: unknown[];
}

export type MetricName = MetricId & { type?: string };

/**
 * Returns the metrics of the summary: the searcher's first, as in the curves; no counters and no metrics of the
 * machine.
 */
export function summaryMetrics(names: readonly MetricName[], searcherMetric: string): MetricId[] {
  const model = names.filter(({ group, name }) => !isProfile(group) && !isCounter(name));
  const metrics = panelsOf(model, searcherMetric).flatMap((panel) => panel.metrics);
  const isSearchers = ({ group, name }: MetricId) => group === "validation" && name === searcherMetric;
  return [...metrics.filter(isSearchers), ...metrics.filter((each) => !isSearchers(each))];
}

/** Returns all choices of the summary: the metrics, then the hyperparameters that differ. Pure. */
export function summaryChoices(
  runs: readonly Compared[],
  names: readonly MetricName[],
  searcherMetric: string,
): SummaryChoice[] {
  const metrics = summaryMetrics(names, searcherMetric);
  return [
    ...metrics.map((metric) => ({
      key: `${metric.group}.${metric.name}`,
      title: titleOf(metric, metrics),
      kind: "metric" as const,
      metric,
    })),
    ...differing(runs).map((name) => ({ key: `hp.${name}`, title: name, kind: "hyperparameter" as const })),
  ];
}

/** Returns the displayed choices: those of the address, else the first few of each kind. Pure. */
export function shownChoices(choices: readonly SummaryChoice[], wanted: readonly string[]): SummaryChoice[] {
  const chosen = choices.filter(({ key }) => wanted.includes(key));
  if (chosen.length > 0) return chosen;
  const first = (kind: SummaryChoice["kind"], count: number) =>
    choices.filter((choice) => choice.kind === kind).slice(0, count);
  return [...first("metric", DEFAULT_METRICS), ...first("hyperparameter", DEFAULT_HYPERPARAMETERS)];
}

/** Returns how many of each kind are shown if some are not: "4 of 6 metrics, 20 of 31 hyperparameters". Pure. */
export function partShown(choices: readonly SummaryChoice[], shown: readonly SummaryChoice[]): string {
  return (["metric", "hyperparameter"] as const)
    .map((kind) => {
      const [part, whole] = [shown, choices].map((each) => each.filter((choice) => choice.kind === kind).length);
      return part === whole ? "" : `${part} of ${whole} ${kind}s`;
    })
    .filter(Boolean)
    .join(", ");
}

function titleOf({ group, name }: MetricId, metrics: readonly MetricId[]): string {
  return metrics.filter((each) => each.name === name).length > 1 ? `${group} ${name}` : name;
}

/**
 * Returns the columns: best and last of metrics whose direction is known for all runs that have them; last, smallest
 * and largest of the others; then the hyperparameters. Pure.
 */
export function summaryColumns(
  runs: readonly Compared[],
  choices: readonly SummaryChoice[],
  summaries: readonly TrialSummary[],
): SummaryColumn[] {
  const byTrial = new Map(summaries.map((summary) => [summary.trialId, summary]));
  const flat = runs.map((run) => flatten(run.hparams));
  return choices.flatMap(({ key, title, kind, metric }): SummaryColumn[] => {
    if (!metric) return [{ key, title, kind, values: flat.map((each) => each[title]) }];
    const { group, name } = metric;
    const of = runs.map((run) =>
      byTrial.get(run.trialId)?.metrics.find((each) => each.group === group && each.name === name),
    );
    const column = (part: "last" | "min" | "max") => ({
      key: `${key}\u0000${part}`,
      title,
      part,
      kind,
      values: of.map((each) => each?.[part]),
    });
    const better = runs.map((run) => betterOf(name, run.searcher));
    const isUnknown = better.every((each) => each === null) || better.some((each, at) => each === null && of[at]);
    if (isUnknown) return [column("last"), column("min"), column("max")];
    const best = of.map((each, index) => (better[index] === "smaller" ? each?.min : each?.max));
    return [{ key: `${key}\u0000best`, title, part: "best", kind, values: best }, column("last")];
  });
}

/** Returns the hyperparameters that are not the same in all runs. */
function differing(runs: readonly Compared[]): string[] {
  const flat = runs.map((run) => flatten(run.hparams));
  const names = [...new Set(flat.flatMap((each) => Object.keys(each)))];
  return names.filter((name) => new Set(flat.map((each) => JSON.stringify(each[name]))).size > 1);
}

/** Returns the sorted indices: numbers, then text; missing values are last in both directions. Pure. */
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
