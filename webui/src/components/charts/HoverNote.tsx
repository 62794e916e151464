import type uPlot from "uplot";
import { useLayoutEffect, useRef } from "react";
import { usePreferences, zone } from "@/browser/preferences";
import { figure } from "@/format/number";
import type { XAxis } from "@/services/series";
import { exact } from "@/format/dateTime";
import type { Aligned } from "./alignment";
import { nearestValues, notePlace } from "./hoverValues";
import type { ChartLine } from "./line";
import { escapeControl } from "@/format/escapeControl";
import typography from "@/styles/typography.module.css";
import styles from "./HoverNote.module.css";

export interface Hover {
  index: number;
  /** Coordinates in the viewport. */
  pointer: { x: number; y: number };
  /** Distance of the value from the pointer, in pixels. */
  down: (value: number) => number;
}

interface Props {
  hover: Hover;
  lines: readonly ChartLine[];
  hidden: ReadonlySet<string>;
  columns: Aligned["columns"];
  data: uPlot.AlignedData;
  x: XAxis;
}

/** Values of the lines nearest to the pointer. A line without a point there shows its last earlier one. */
export function HoverNote({ hover, lines, hidden, columns, data, x }: Props) {
  const timeZone = zone(usePreferences());
  const note = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = note.current;
    if (!element) return;
    const size = { width: element.offsetWidth, height: element.offsetHeight };
    const { left, top } = notePlace(hover.pointer, size, { width: innerWidth, height: innerHeight });
    element.style.left = `${left}px`;
    element.style.top = `${top}px`;
  });
  const at = data[0][hover.index];
  if (at === undefined || at === null) return null;
  const { shown, more } = nearestValues(lines, hidden, columns, data, hover.index, hover.down);
  return (
    <div ref={note} className={styles.hover} aria-hidden="true" data-testid="hover-note">
      <strong>
        {x === "time" ? exact(at * 1000, timeZone) : `${x === "epochs" ? "epoch" : "step"} ${figure(at)}`}
      </strong>
      {shown.map(({ line, value }) => (
        <span key={line.key} className={styles.value}>
          <b className={typography.number}>{figure(value)}</b>
          <i style={{ background: line.stroke.color }} />
          <span>{escapeControl(line.label)}</span>
        </span>
      ))}
      {more > 0 && <span className={typography.soft}>and {more} more</span>}
    </div>
  );
}
