import { clsx } from "clsx";
import { memo, type ReactNode, useDeferredValue, useMemo, useState } from "react";
import { Link } from "react-router";
import { useShownTheme } from "@/browser/preferences";
import { Button } from "@/components/base/Button";
import { Icon } from "@/components/base/Icon";
import { Swatch } from "@/components/board/Legend";
import { type Run, strokesOf } from "@/components/board/lines";
import { StateBadge } from "@/components/StateBadge";
import { escapeControl } from "@/format/escapeControl";
import { figure } from "@/format/number";
import type { Compared } from "./runs";
import { sortedPlaces, type SummaryColumn } from "./summary";
import layout from "@/styles/layout.module.css";
import styles from "./SummaryTable.module.css";

interface Props {
  compared: readonly Compared[];
  /** The runs of the curves, in the same order. */
  runs: readonly Run[];
  columns: readonly SummaryColumn[];
  /** True while the columns have no values yet. Then only the rows that are visible at first are rendered. */
  isLoading: boolean;
  /** The control that chooses the columns. */
  choice: ReactNode;
  /** True if the curves are drawn as one band per group. */
  isBanded: boolean;
  drop: (run: Compared) => void;
}

/** More rows than are visible at first. */
const FIRST_ROWS = 30;

/** One row per run: the colour of its curves, its values, and the hyperparameters that differ. */
export function SummaryTable({ compared, runs, columns, isLoading, choice, ...rest }: Props) {
  const wanted = useMemo(() => {
    const count = isLoading ? FIRST_ROWS : compared.length;
    return { compared: compared.slice(0, count), runs: runs.slice(0, count), columns };
  }, [compared, runs, columns, isLoading]);
  // Rendering many rows is slow. The curves below and user input do not wait for it.
  const drawn = useDeferredValue(wanted);
  return (
    <section className={layout.card} aria-label="Summary">
      <Rows {...drawn} {...rest} />
      {choice}
    </section>
  );
}

const Rows = memo(function Rows({ compared, runs, columns, isBanded, drop }: Omit<Props, "choice" | "isLoading">) {
  useShownTheme();
  const [sort, setSort] = useState<{ key: string; descending: boolean } | null>(null);
  const sorted = columns.find(({ key }) => key === sort?.key);
  const places = useMemo(
    () => (sorted ? sortedPlaces(sorted.values, sort!.descending) : compared.map((_, index) => index)),
    [sorted, sort, compared],
  );
  const strokeFor = strokesOf(runs, isBanded);
  const press = (key: string) =>
    setSort((now) =>
      now?.key !== key ? { key, descending: false } : now.descending ? null : { key, descending: true },
    );
  return (
    <div className={styles.scroll} role="region" aria-label="Summary of the runs" tabIndex={0}>
      <table className={clsx(layout.table, layout.cardTable)}>
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
                <td data-label="Run" className={styles.first}>
                  <span className={styles.run}>
                    <Swatch stroke={strokeFor(runs[index]!)} />
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
                  <td key={column.key} data-label={labelOf(column)} className={layout.numberCell}>
                    {cellText(column.values[index])}
                  </td>
                ))}
                <td data-label="State">
                  <StateBadge state={run.state} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
});

function labelOf({ title, part }: SummaryColumn): string {
  return escapeControl(part ? `${title} ${part}` : title);
}

function cellText(value: unknown): string {
  return typeof value === "boolean" ? String(value) : figure(value);
}
