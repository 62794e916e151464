import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useNavigate } from "react-router";
import { Button } from "@/components/base/Button";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { StateBadge } from "@/components/StateBadge";
import { TimeText } from "@/components/TimeText";
import { searcherOf } from "@/components/board/direction";
import { figure, toNumber } from "@/format/number";
import { flatten } from "@/format/nested";
import { trialsQuery } from "@/services/experiments";
import type { Trial } from "@/services/trials";
import type { TabProps } from "./tabProps";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const DISPLAY_LIMIT = 500;

const BY_ID = { key: "id", descending: false } as const;

type Key = "id" | "state" | "steps" | "restarts" | "metric" | `hp.${string}`;

/** All trials of a search: the hyperparameters that differ, and the results. */
export default function Trials({ experiment }: TabProps) {
  const navigate = useNavigate();
  const { data, error } = useQuery(trialsQuery(experiment.id));
  const [sort, setSort] = useState<{ key: Key; descending: boolean }>(() =>
    experiment.numTrials > 1 ? { key: "metric", descending: !searcherOf(experiment).smallerIsBetter } : BY_ID,
  );
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const trials = useMemo(() => data ?? [], [data]);
  const [varying, same] = useMemo(() => namesOf(trials), [trials]);
  const rows = useMemo(() => [...trials].sort(by(sort.key, sort.descending)), [trials, sort]);
  if (error && !data) return <Failure error={error} />;
  if (!data) return <Loading what="the trials" />;
  if (trials.length === 0)
    return <EmptyState title="No trial yet" command={`det experiment activate ${experiment.id}`} />;
  const head = (key: Key, title: string, number = false) => (
    <th
      key={key}
      className={number ? layout.numberCell : undefined}
      aria-sort={sort.key === key ? (sort.descending ? "descending" : "ascending") : "none"}
    >
      <button
        type="button"
        className={layout.sortButton}
        onClick={() => setSort({ key, descending: sort.key === key && !sort.descending })}
      >
        {escapeControl(title)}
        {sort.key === key && <Icon name={sort.descending ? "arrowDown" : "arrowUp"} />}
      </button>
    </th>
  );
  const toggle = (id: number) =>
    setChosen((now) => (now.has(id) ? new Set([...now].filter((each) => each !== id)) : new Set([...now, id])));
  return (
    <section aria-label="Trials">
      <div className={layout.row}>
        <Button
          why={chosen.size < 2 ? "Select two or more" : chosen.size > 100 ? "At most 100 can be compared" : undefined}
          onClick={() => void navigate(`/compare?trials=${[...chosen].join(",")}`)}
        >
          Compare {chosen.size > 0 ? chosen.size : ""}
        </Button>
        <span className={typography.soft}>{trials.length} trials</span>
      </div>
      <div className={layout.scrollX}>
        <table className={clsx(layout.table, layout.cardTable)}>
          <thead>
            <tr>
              <th>
                <span className={typography.visuallyHidden}>Selected</span>
              </th>
              {head("id", "Trial")}
              {head("state", "State")}
              {head("metric", experiment.searcherMetric, true)}
              {varying.map((name) => head(`hp.${name}`, name, true))}
              {head("steps", "Steps", true)}
              {head("restarts", "Restarts", true)}
              {same.map((name) => head(`hp.${name}`, name, true))}
              <th>Started</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, DISPLAY_LIMIT).map((trial) => {
              const hparams = flatten(trial.hparams);
              const cell = (name: string) => (
                <td data-label={escapeControl(name)} key={name} className={layout.numberCell}>
                  {Object.hasOwn(hparams, name) ? figure(hparams[name]) : ""}
                </td>
              );
              return (
                <tr key={trial.id}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Select trial ${trial.id}`}
                      checked={chosen.has(trial.id)}
                      onChange={() => toggle(trial.id)}
                    />
                  </td>
                  <td data-label="Trial">
                    <Link to={`/experiments/${experiment.id}/trials/${trial.id}`}>{trial.id}</Link>
                    {trial.id === experiment.bestTrialId && (
                      <span className={typography.tag} title="The best one">
                        <Icon name="star" /> best
                      </span>
                    )}
                  </td>
                  <td data-label="State">
                    <StateBadge state={trial.state} />
                  </td>
                  <td data-label={escapeControl(experiment.searcherMetric)} className={layout.numberCell}>
                    {figure(trial.searcherMetricValue)}
                  </td>
                  {varying.map(cell)}
                  <td data-label="Steps" className={layout.numberCell}>
                    {trial.totalBatchesProcessed}
                  </td>
                  <td data-label="Restarts" className={layout.numberCell}>
                    {trial.restarts}
                  </td>
                  {same.map(cell)}
                  <td data-label="Started">
                    <TimeText at={trial.startTime} />
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {rows.length > DISPLAY_LIMIT && (
        <p className={typography.hint}>
          The first {DISPLAY_LIMIT} of {rows.length} trials.
        </p>
      )}
    </section>
  );
}

/** Returns the names of the hyperparameters that differ between trials, and of those that do not. */
function namesOf(trials: readonly Trial[]): [string[], string[]] {
  const values = new Map<string, Set<string>>();
  const all = trials.map((trial) => flatten(trial.hparams));
  for (const hparams of all) for (const name of Object.keys(hparams)) values.set(name, new Set());
  for (const hparams of all)
    for (const [name, found] of values) found.add(Object.hasOwn(hparams, name) ? JSON.stringify(hparams[name]) : "");
  const names = [...values.keys()];
  const differs = (name: string) => values.get(name)!.size > 1;
  return [names.filter(differs), names.filter((name) => !differs(name))];
}

function by(key: Key, descending: boolean): (a: Trial, b: Trial) => number {
  const sign = descending ? -1 : 1;
  const value = (trial: Trial): unknown => {
    if (key === "id") return trial.id;
    if (key === "state") return trial.state;
    if (key === "steps") return trial.totalBatchesProcessed;
    if (key === "restarts") return trial.restarts;
    if (key === "metric") return toNumber(trial.searcherMetricValue);
    return flatten(trial.hparams)[key.slice(3)];
  };
  return (a, b) => {
    const [first, second] = [value(a), value(b)];
    const [isNoneA, isNoneB] = [isNone(first), isNone(second)];
    if (isNoneA || isNoneB) return Number(isNoneA) - Number(isNoneB);
    if (typeof first === "number" && typeof second === "number") return sign * (first - second) || a.id - b.id;
    return sign * String(first).localeCompare(String(second)) || a.id - b.id;
  };
}

function isNone(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === "number" && Number.isNaN(value));
}
