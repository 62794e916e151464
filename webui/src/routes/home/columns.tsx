import { Fragment, type ReactNode } from "react";
import { Link } from "react-router";
import { ProgressBar } from "@/components/ProgressBar";
import { StateBadge } from "@/components/StateBadge";
import { TimeText } from "@/components/TimeText";
import { duration } from "@/format/duration";
import { bytes, figure } from "@/format/number";
import { runTimes } from "@/format/runTimes";
import { isUnderWay, stateLook } from "@/format/states";
import { escapeControl } from "@/format/escapeControl";
import { useNow } from "@/hooks/useNow";
import type { Row } from "@/services/columns";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./columns.module.css";

export interface ColumnLook {
  title: string;
  width: number;
  /** True for right-aligned numbers; undefined if the values decide. */
  number?: boolean;
  /** Computed for the visible rows: requested by name, and not available for sorting or filtering. */
  computed?: boolean;
  draw: (row: Row, addFilter: (column: string, value: string) => void) => ReactNode;
}

function RunTime({ row, part }: { row: Row; part: "waited" | "ran" }) {
  const now = useNow();
  return row.times && <span className={typography.number}>{duration(runTimes(row.times, row.state, now)[part])}</span>;
}

function Took({ row }: { row: Row }) {
  const now = useNow();
  return (
    <span className={typography.number}>
      {duration(row.endTime ? row.durationSeconds * 1000 : now - Date.parse(row.startTime))}
    </span>
  );
}

/** A value that is added to the filter when it is clicked. */
function Clickable({
  column,
  value,
  add,
}: {
  column: string;
  value: string;
  add: (column: string, value: string) => void;
}) {
  return (
    <button
      type="button"
      className={layout.sortButton}
      title={`Show only ${escapeControl(`${column} = ${value}`)}`}
      onClick={() => add(column, value)}
    >
      {escapeControl(value)}
    </button>
  );
}

/** Columns that every row has. All others are cells. */
export const BUILT_IN: Record<string, ColumnLook> = {
  id: { title: "ID", width: 56, number: true, draw: (row) => <span className={typography.number}>{row.id}</span> },
  name: {
    title: "Name",
    width: 228,
    draw: (row) => (
      <Link to={`/experiments/${row.id}`} title={escapeControl(row.name)}>
        {escapeControl(row.name) || `experiment ${row.id}`}
      </Link>
    ),
  },
  description: {
    title: "Description",
    width: 220,
    draw: (row) => <span title={escapeControl(row.description)}>{escapeControl(row.description)}</span>,
  },
  state: {
    title: "State",
    width: 134,
    draw: (row) =>
      (row.failure ?? row.note) ? (
        <span title={escapeControl(row.failure ?? row.note ?? "")}>
          <StateBadge state={row.state} />
          {!row.failure && (
            <span role="img" aria-label={escapeControl(row.note ?? "")}>
              {" ⚠"}
            </span>
          )}
        </span>
      ) : (
        <StateBadge state={row.state} title={stateLook(row.state).word} />
      ),
  },
  progress: {
    title: "Progress",
    width: 100,
    draw: (row) =>
      // Experiments that wait or have ended show only their state.
      isUnderWay(row.state) && <ProgressBar fraction={row.progress} label={`Progress of experiment ${row.id}`} />,
  },
  searcherMetricsVal: {
    title: "Best metric",
    width: 190,
    number: true,
    draw: (row) =>
      row.searcherMetricValue === null ? null : (
        <span
          className={styles.named}
          title={`${escapeControl(row.searcherMetric)}, ${row.smallerIsBetter ? "minimum" : "maximum"}`}
        >
          <small className={typography.soft}>{escapeControl(row.searcherMetric)}</small>
          <span className={typography.number}>{figure(row.searcherMetricValue)}</span>
        </span>
      ),
  },
  searcherMetric: { title: "Metric", width: 150, draw: (row) => escapeControl(row.searcherMetric) },
  searcherType: {
    title: "Searcher",
    width: 120,
    draw: (row, add) => <Clickable column="searcherType" value={row.searcherType} add={add} />,
  },
  waited: {
    title: "Waited",
    width: 115,
    number: true,
    computed: true,
    draw: (row) => <RunTime row={row} part="waited" />,
  },
  ran: { title: "Ran", width: 115, number: true, computed: true, draw: (row) => <RunTime row={row} part="ran" /> },
  duration: { title: "Elapsed", width: 115, number: true, draw: (row) => <Took row={row} /> },
  startTime: { title: "Submitted", width: 105, draw: (row) => <TimeText at={row.startTime} /> },
  endTime: { title: "Ended", width: 120, draw: (row) => <TimeText at={row.endTime} /> },
  user: { title: "User", width: 105, draw: (row, add) => <Clickable column="user" value={row.username} add={add} /> },
  tags: {
    title: "Labels",
    width: 150,
    draw: (row, add) => (
      <span title={row.labels.map(escapeControl).join(", ")}>
        {row.labels.map((label) => (
          <Fragment key={label}>
            <button
              type="button"
              className={typography.tag}
              title={`Show only label ${escapeControl(label)}`}
              onClick={() => add("label", label)}
            >
              {escapeControl(label)}
            </button>{" "}
          </Fragment>
        ))}
      </span>
    ),
  },
  numTrials: {
    title: "Trials",
    width: 80,
    number: true,
    draw: (row) => <span className={typography.number}>{row.numTrials}</span>,
  },
  forkedFrom: {
    title: "Forked from",
    width: 110,
    number: true,
    draw: (row) =>
      row.forkedFrom === null ? null : <Link to={`/experiments/${row.forkedFrom}`}>{row.forkedFrom}</Link>,
  },
  resourcePool: {
    title: "Pool",
    width: 110,
    draw: (row, add) => <Clickable column="resourcePool" value={row.resourcePool} add={add} />,
  },
  checkpointCount: {
    title: "Checkpoints",
    width: 110,
    number: true,
    draw: (row) => <span className={typography.number}>{row.checkpointCount}</span>,
  },
  checkpointSize: {
    title: "Checkpoint size",
    width: 130,
    number: true,
    draw: (row) => <span className={typography.number}>{bytes(row.checkpointSize)}</span>,
  },
  failure: {
    title: "Failure",
    width: 300,
    draw: (row) => <span title={escapeControl(row.failure ?? "")}>{escapeControl(row.failure ?? "")}</span>,
  },
  archived: { title: "Archived", width: 90, draw: (row) => (row.archived ? "archived" : "") },
};

/** Returns the look of a hyperparameter, a metric or a value of the configuration. */
export function cellColumn(column: string): ColumnLook {
  const title = escapeControl(column.replace(/^config\./, "").replace(/^hp\./, ""));
  return {
    title,
    width: Math.min(260, Math.max(110, title.length * 8 + 40)),
    // Metrics are numbers; a hyperparameter may be text.
    ...(/^(hp|config)\./.test(column) ? {} : { number: true }),
    draw: (row) => {
      const value = Object.hasOwn(row.cells, column) ? row.cells[column] : null;
      const text = typeof value === "boolean" ? String(value) : figure(value);
      return (
        <span
          className={typeof value === "number" ? typography.number : undefined}
          title={value === null ? "" : escapeControl(String(value))}
        >
          {text}
        </span>
      );
    },
  };
}

export function lookOf(column: string): ColumnLook {
  return Object.hasOwn(BUILT_IN, column) ? BUILT_IN[column]! : cellColumn(column);
}

/** Returns the columns of numbers. A column without a fixed kind is one if all visible values are numbers. */
export function figureColumns(columns: readonly string[], rows: Iterable<Row>): ReadonlySet<string> {
  const shown = [...rows];
  return new Set(
    columns.filter((column) => {
      const look = lookOf(column);
      if (look.number !== undefined || Object.hasOwn(BUILT_IN, column)) return look.number === true;
      const values = shown.map((row) => row.cells[column]).filter((value) => value !== null && value !== undefined);
      return values.length > 0 && values.every((value) => typeof value === "number");
    }),
  );
}
