import type { ChartLine } from "../charts/line";
import { escapeControl } from "@/format/escapeControl";
import typography from "@/styles/typography.module.css";
import styles from "./Legend.module.css";

const DISPLAY_LIMIT = 40;

/** Which line is whose: colour and dash beside the name. */
export function Legend({ lines }: { lines: readonly ChartLine[] }) {
  return (
    // Many lines scroll, and what scrolls has to be reached by keys.
    <ul className={styles.legend} aria-label="Lines" tabIndex={lines.length > 3 ? 0 : undefined}>
      {lines.slice(0, DISPLAY_LIMIT).map((line) => (
        <li key={line.key} className={styles.line}>
          <svg width="22" height="8" aria-hidden="true">
            <line
              x1="0"
              x2="22"
              y1="4"
              y2="4"
              stroke={line.stroke.color}
              strokeWidth="2"
              strokeDasharray={line.stroke.dash?.join(" ")}
            />
          </svg>
          {escapeControl(line.label)}
        </li>
      ))}
      {lines.length > DISPLAY_LIMIT && <li className={typography.soft}>and {lines.length - DISPLAY_LIMIT} more</li>}
    </ul>
  );
}
