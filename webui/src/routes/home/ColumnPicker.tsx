import { clsx } from "clsx";
import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { IDLE_DELAY_MS, whenIdle } from "@/browser/idleCallback";
import { Button } from "@/components/base/Button";
import { Popover } from "@/components/base/Popover";
import { type ColumnKind, columnsQuery } from "@/services/columns";
import { BUILT_IN, lookOf } from "./columns";
import { setColumnSizes } from "./columnSizes";
import { DEFAULT_COLUMNS } from "./listState";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./ColumnPicker.module.css";

/** In the order of importance. Each kind has a limit of its own, so that one with many leaves room for the others. */
const KINDS: readonly { kind: ColumnKind; title: string }[] = [
  { kind: "hyperparameter", title: "Hyperparameters" },
  { kind: "metric", title: "Metrics" },
  { kind: "experiment", title: "Experiment" },
  { kind: "config", title: "Configuration" },
];
const LIMIT = 60;

const kindQueries = (query: string) => KINDS.map(({ kind }) => columnsQuery(query, LIMIT, kind));

interface Props {
  columns: readonly string[];
  onChange: (columns: string[]) => void;
}

export function ColumnPicker(props: Props) {
  const queries = useQueryClient();
  // Loaded before it is opened, when no other request is pending.
  useEffect(
    () => whenIdle(() => kindQueries("").forEach((each) => void queries.prefetchQuery(each)), IDLE_DELAY_MS),
    [queries],
  );
  return (
    <Popover label="Columns" trigger="Columns">
      <Choice {...props} />
    </Popover>
  );
}

/** The displayed columns in order, and a search among all others, of which there may be thousands. */
function Choice({ columns, onChange }: Props) {
  const [query, setQuery] = useState("");
  const answers = useQueries({ queries: kindQueries(query) });
  const toggle = (column: string) =>
    onChange(columns.includes(column) ? columns.filter((each) => each !== column) : [...columns, column]);
  const move = (column: string, by: number) => {
    const next = columns.filter((each) => each !== column);
    next.splice(Math.max(0, columns.indexOf(column) + by), 0, column);
    onChange(next);
  };
  const computed = Object.keys(BUILT_IN).filter(
    (column) =>
      BUILT_IN[column]!.computed &&
      !columns.includes(column) &&
      titleOf(column).toLowerCase().includes(query.toLowerCase()),
  );
  const kinds = KINDS.map(({ kind, title }, index) => {
    const { columns: found = [], total = 0 } = answers[index]?.data ?? {};
    const others: { column: string; count: number | null }[] = found
      .filter(({ column }) => !columns.includes(column))
      .map(({ column, count }) => ({ column, count: kind === "experiment" ? null : count }));
    if (kind === "experiment") others.push(...computed.map((column) => ({ column, count: null })));
    return { kind, title, others, more: total - found.length };
  }).filter(({ others, more }) => others.length + more > 0);
  return (
    <>
      <input
        type="search"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        placeholder="Find a column"
        aria-label="Find a column"
      />
      <div className={styles.scroll}>
        <section className={styles.list} aria-label="Shown">
          <h3>Shown</h3>
          {columns.map((column, index) => (
            <div key={column} className={clsx(layout.row, styles.line)}>
              <label className={layout.grow}>
                <input type="checkbox" checked onChange={() => toggle(column)} disabled={columns.length === 1} />{" "}
                {titleOf(column)}
              </label>
              <Button
                kind="quiet"
                aria-label={`Move ${column} left`}
                why={index === 0 ? "It is the first" : undefined}
                onClick={() => move(column, -1)}
              >
                <Icon name="arrowUp" />
              </Button>
              <Button
                kind="quiet"
                aria-label={`Move ${column} right`}
                why={index === columns.length - 1 ? "It is the last" : undefined}
                onClick={() => move(column, 1)}
              >
                <Icon name="arrowDown" />
              </Button>
            </div>
          ))}
        </section>
        {kinds.map(({ kind, title, others, more }) => (
          <section key={kind} className={styles.list} aria-label={title}>
            <h3>{title}</h3>
            {others.map(({ column, count }) => (
              <label key={column} className={styles.line}>
                <input type="checkbox" checked={false} onChange={() => toggle(column)} />{" "}
                <span className={layout.grow}>{titleOf(column)}</span>
                {count !== null && <small className={typography.soft}>in {count}</small>}
              </label>
            ))}
            {more > 0 && <p className={typography.hint}>{more} more: type a part of the name.</p>}
          </section>
        ))}
        {kinds.length === 0 && answers.every(({ data }) => data) && (
          <p className={typography.hint}>
            {query ? "No other column has this in its name." : "All columns are shown."}
          </p>
        )}
      </div>
      <Button
        onClick={() => {
          onChange(DEFAULT_COLUMNS);
          setColumnSizes({});
        }}
      >
        Reset columns and widths
      </Button>
    </>
  );
}

function titleOf(column: string): string {
  return Object.hasOwn(BUILT_IN, column) ? lookOf(column).title : escapeControl(column);
}
