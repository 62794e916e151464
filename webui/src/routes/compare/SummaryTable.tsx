import { useMemo, useState } from "react";
import { Link } from "react-router";
import { useShownTheme } from "@/app/preferences";
import { Button } from "@/components/base/Button";
import { Icon } from "@/components/base/Icon";
import { Swatch } from "@/components/board/Legend";
import type { Run } from "@/components/board/lines";
import { strokeOf } from "@/components/charts/palette";
import { StateBadge } from "@/components/StateBadge";
import { escapeControl } from "@/format/escapeControl";
import { figure } from "@/format/number";
import type { Compared } from "./runs";
import { sortedPlaces, type SummaryColumn } from "./summary";
import layout from "@/styles/layout.module.css";
import styles from "./SummaryTable.module.css";

interface Props {
  compared: readonly Compared[];
  /** The same runs as the curves have them. */
  runs: readonly Run[];
  columns: readonly SummaryColumn[];
  /** The curves are drawn as one band for each group. */
  isBanded: boolean;
  drop: (run: Compared) => void;
}

/** The runs, one row each: the colour of its curves, its figures, and the hyperparameters that differ. */
export function SummaryTable({ compared, runs, columns, isBanded, drop }: Props) {
  useShownTheme();
  const [sort, setSort] = useState<{ key: string; descending: boolean } | null>(null);
  const sorted = columns.find(({ key }) => key === sort?.key);
  const places = useMemo(
    () => (sorted ? sortedPlaces(sorted.values, sort!.descending) : compared.map((_, index) => index)),
    [sorted, sort, compared],
  );
  const groups = [...new Set(runs.map((run) => run.group ?? run.label))];
  const colorOf = (index: number) => (isBanded ? groups.indexOf(runs[index]!.group ?? runs[index]!.label) : index);
  const press = (key: string) =>
    setSort((now) =>
      now?.key !== key ? { key, descending: false } : now.descending ? null : { key, descending: true },
    );
  return (
    <section className={layout.card} aria-label="Summary">
      <div className={styles.scroll} role="region" aria-label="Summary of the runs" tabIndex={0}>
        <table className={layout.table}>
          <thead>
            <tr>
              <th className={styles.first}>Run</th>
              {columns.map((column) => {
                const isSorted = column.key === sort?.key;
                const order = sort?.descending ? "descending" : "ascending";
                return (
                  <th key={column.key} className={layout.numberCell} aria-sort={isSorted ? order : "none"}>
                    <button type="button" className={layout.sortButton} onClick={() => press(column.key)}>
                      <span className={styles.title}>
                        {escapeControl(column.title)}
                        {column.part && " "}
                        {column.part && <span>{column.part}</span>}
                      </span>
                      {isSorted && <Icon name={sort?.descending ? "arrowDown" : "arrowUp"} />}
                    </button>
                  </th>
                );
              })}
              <th>State</th>
            </tr>
          </thead>
          <tbody>
            {places.map((index) => {
              const run = compared[index]!;
              return (
                <tr key={run.trialId} data-run={run.trialId}>
                  <td className={styles.first}>
                    <span className={styles.run}>
                      <Swatch stroke={strokeOf(colorOf(index))} />
                      <Link to={`/experiments/${run.experimentId}/trials/${run.trialId}`}>
                        {escapeControl(runs[index]!.label)}
                      </Link>
                      <Button
                        kind="quiet"
                        aria-label={`Remove ${run.name}, trial ${run.trialId}, from the comparison`}
                        onClick={() => drop(run)}
                      >
                        <Icon name="close" />
                      </Button>
                    </span>
                  </td>
                  {columns.map((column) => (
                    <td key={column.key} className={layout.numberCell}>
                      {cellText(column.values[index])}
                    </td>
                  ))}
                  <td>
                    <StateBadge state={run.state} />
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function cellText(value: unknown): string {
  return typeof value === "boolean" ? String(value) : figure(value);
}
