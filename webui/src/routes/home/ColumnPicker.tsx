import { clsx } from "clsx";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { IDLE_DELAY_MS, whenIdle } from "@/app/idleCallback";
import { Button } from "@/components/base/Button";
import { Popover } from "@/components/base/Popover";
import { columnsQuery } from "@/services/columns";
import { BUILT_IN, lookOf } from "./columns";
import { DEFAULT_COLUMNS } from "./listState";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./ColumnPicker.module.css";

interface Props {
  columns: readonly string[];
  onChange: (columns: string[]) => void;
}

export function ColumnPicker(props: Props) {
  const queries = useQueryClient();
  // Here before it is opened, once nothing else is waited for.
  useEffect(() => whenIdle(() => void queries.prefetchQuery(columnsQuery("")), IDLE_DELAY_MS), [queries]);
  return (
    <Popover label="Columns" trigger="Columns">
      <Choice {...props} />
    </Popover>
  );
}

/** Shown columns in their order, and all others by a part of their name: there may be thousands. */
function Choice({ columns, onChange }: Props) {
  const [query, setQuery] = useState("");
  const { data } = useQuery(columnsQuery(query));
  const toggle = (column: string) =>
    onChange(columns.includes(column) ? columns.filter((each) => each !== column) : [...columns, column]);
  const move = (column: string, by: number) => {
    const next = columns.filter((each) => each !== column);
    next.splice(Math.max(0, columns.indexOf(column) + by), 0, column);
    onChange(next);
  };
  const others = (data?.columns ?? []).filter(({ column }) => !columns.includes(column));
  const computed = Object.keys(BUILT_IN).filter(
    (column) =>
      BUILT_IN[column]!.computed &&
      !columns.includes(column) &&
      titleOf(column).toLowerCase().includes(query.toLowerCase()),
  );
  return (
    <>
      <input
        type="search"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        placeholder="Find a column"
        aria-label="Find a column"
      />
      <div className={styles.list}>
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
              why={index === 0 ? "it is the first" : undefined}
              onClick={() => move(column, -1)}
            >
              <Icon name="arrowUp" />
            </Button>
            <Button
              kind="quiet"
              aria-label={`Move ${column} right`}
              why={index === columns.length - 1 ? "it is the last" : undefined}
              onClick={() => move(column, 1)}
            >
              <Icon name="arrowDown" />
            </Button>
          </div>
        ))}
        <h3>{query ? "Found" : "Others"}</h3>
        {computed.map((column) => (
          <label key={column} className={styles.line}>
            <input type="checkbox" checked={false} onChange={() => toggle(column)} />{" "}
            <span className={layout.grow}>{titleOf(column)}</span>
          </label>
        ))}
        {others.map(({ column, kind, count }) => (
          <label key={column} className={styles.line}>
            <input type="checkbox" checked={false} onChange={() => toggle(column)} />{" "}
            <span className={layout.grow}>{titleOf(column)}</span>
            <small className={typography.soft}>{kind === "experiment" ? "" : `${kind}, in ${count}`}</small>
          </label>
        ))}
        {data && data.total > data.columns.length && (
          <p className={typography.hint}>{data.total - data.columns.length} more: type a part of the name.</p>
        )}
        {data && others.length + computed.length === 0 && <p className={typography.hint}>All columns are shown.</p>}
      </div>
      <Button onClick={() => onChange(DEFAULT_COLUMNS)}>Reset columns</Button>
    </>
  );
}

function titleOf(column: string): string {
  return Object.hasOwn(BUILT_IN, column) ? lookOf(column).title : escapeControl(column);
}
