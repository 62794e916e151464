import type uPlot from "uplot";
import { usePreferences, zone } from "@/app/preferences";
import { figure } from "@/format/number";
import type { XAxis } from "@/services/series";
import { exact } from "@/format/dateTime";
import type { Aligned } from "./alignment";
import type { ChartLine } from "./line";
import { escapeControl } from "@/format/escapeControl";
import typography from "@/styles/typography.module.css";
import styles from "./HoverNote.module.css";

export interface Hover {
  index: number;
  left: number;
  top: number;
  /** The pointer is over this chart and not over one that shares the hover. */
  isOwn: boolean;
}

interface Props {
  hover: Hover;
  lines: readonly ChartLine[];
  columns: Aligned["columns"];
  data: uPlot.AlignedData;
  x: XAxis;
}

const DISPLAY_LIMIT = 10;

/** The values of the lines where the pointer is, the nearest points before it where one has none just there. */
export function HoverNote({ hover, lines, columns, data, x }: Props) {
  const timeZone = zone(usePreferences());
  const at = data[0][hover.index];
  if (at === undefined || at === null) return null;
  const values = lines
    .map((line, index) => ({
      line,
      value: nearest(data[columns[index]!.line] as (number | null)[] | undefined, hover.index),
    }))
    .filter(({ value }) => value !== null);
  const place = hover.left > 260 ? { right: `calc(100% - ${hover.left - 12}px)` } : { left: hover.left + 12 };
  return (
    <div className={styles.hover} style={{ ...place, top: 8 }} aria-hidden="true">
      <strong>
        {x === "time" ? exact(at * 1000, timeZone) : `${x === "epochs" ? "epoch" : "step"} ${figure(at)}`}
      </strong>
      {values.slice(0, DISPLAY_LIMIT).map(({ line, value }) => (
        <span key={line.key}>
          <i style={{ background: line.stroke.color }} /> {escapeControl(line.label)}{" "}
          <b className={typography.number}>{figure(value)}</b>
        </span>
      ))}
      {values.length > DISPLAY_LIMIT && <span>and {values.length - DISPLAY_LIMIT} more</span>}
    </div>
  );
}

function nearest(column: (number | null)[] | undefined, index: number): number | null {
  if (!column) return null;
  for (let at = index; at >= 0; at -= 1) {
    const value = column[at];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}
