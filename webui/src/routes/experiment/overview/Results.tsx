import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "react-router";
import { betterOf, searcherOf } from "@/components/board/direction";
import { isCounter } from "@/components/board/panels";
import { Failure } from "@/components/base/Failure";
import { escapeControl } from "@/format/escapeControl";
import { flatten } from "@/format/nested";
import { figure } from "@/format/number";
import type { Experiment } from "@/services/experiments";
import { experimentMetricNamesQuery, type MetricId, summariesQuery, type TrialSummary } from "@/services/trials";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Results.module.css";

const DISPLAY_LIMIT = 8;

/** Values and hyperparameters of the representative trial: the best by the searcher's metric. */
export function Results({ experiment, trialId }: { experiment: Experiment; trialId: number }) {
  const names = useQuery(experimentMetricNamesQuery(experiment.id));
  const metrics = useMemo(
    () => metricsOf(names.data?.metrics ?? [], experiment.searcherMetric),
    [names.data, experiment.searcherMetric],
  );
  const { data, error, refetch } = useQuery({
    ...summariesQuery(experiment.id, [trialId], metrics),
    enabled: names.data !== undefined,
  });
  const summary = data?.[0];
  const rows = summary ? valuesOf(summary, metrics, experiment) : [];
  const hyperparameters = Object.entries(flatten(summary?.hparams ?? {}));
  const link = <Link to={`/experiments/${experiment.id}/trials/${trialId}`}>trial {trialId}</Link>;
  const problem = names.error ?? error;
  if (problem && !summary)
    return <Failure error={problem} retry={() => void (names.error ? names.refetch() : refetch())} />;
  return (
    <div className={styles.column}>
      <section className={layout.card} aria-label="Values">
        <h2>Values</h2>
        {experiment.numTrials > 1 && <p className={typography.hint}>Of {link}, the best.</p>}
        {rows.length === 0 ? (
          <p className={typography.hint}>{summary ? "No validation yet." : "loading…"}</p>
        ) : (
          <table className={clsx(layout.table, layout.cardTable)}>
            <thead>
              <tr>
                <th>Metric</th>
                <th className={layout.numberCell}>Best</th>
                <th className={layout.numberCell}>Last</th>
                <th className={layout.numberCell}>Min</th>
                <th className={layout.numberCell}>Max</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ name, best, last, min, max }) => (
                <tr key={name}>
                  <td data-label="Metric">
                    <code>{escapeControl(name)}</code>
                  </td>
                  <td data-label="Best" className={layout.numberCell}>
                    {best === null ? "" : figure(best)}
                  </td>
                  <td data-label="Last" className={layout.numberCell}>
                    {figure(last)}
                  </td>
                  <td data-label="Min" className={layout.numberCell}>
                    {figure(min)}
                  </td>
                  <td data-label="Max" className={layout.numberCell}>
                    {figure(max)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      <section className={layout.card} aria-label="Hyperparameters">
        <h2>Hyperparameters</h2>
        {hyperparameters.length === 0 ? (
          <p className={typography.hint}>{summary ? "The configuration has none." : "loading…"}</p>
        ) : (
          <div className={styles.scroll} role="region" aria-label="Values of hyperparameters" tabIndex={0}>
            <table className={layout.table}>
              <tbody>
                {hyperparameters.map(([name, value]) => (
                  <tr key={name}>
                    <th scope="row">
                      <code>{escapeControl(name)}</code>
                    </th>
                    <td className={layout.numberCell}>{typeof value === "boolean" ? String(value) : figure(value)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </div>
  );
}

/** Returns the metrics of the validation, the searcher's first, without counters. */
function metricsOf(names: readonly (MetricId & { type: string })[], searcherMetric: string): MetricId[] {
  const isSearchers = ({ name }: MetricId) => Number(name === searcherMetric);
  return names
    .filter(({ group, name, type }) => group === "validation" && type === "number" && !isCounter(name))
    .map(({ group, name }) => ({ group, name }))
    .sort((a, b) => isSearchers(b) - isSearchers(a) || a.name.localeCompare(b.name))
    .slice(0, DISPLAY_LIMIT);
}

function valuesOf(summary: TrialSummary, metrics: readonly MetricId[], experiment: Experiment) {
  const searcher = searcherOf(experiment);
  return metrics.flatMap(({ group, name }) => {
    const found = summary.metrics.find((each) => each.group === group && each.name === name);
    if (!found) return [];
    const better = betterOf(name, searcher);
    const { last, min, max } = found;
    return [{ name, best: better && (better === "smaller" ? min : max), last, min, max }];
  });
}
