import type { ChartLine } from "../charts/line";
import type { Stroke } from "../charts/palette";
import { escapeControl } from "@/format/escapeControl";
import typography from "@/styles/typography.module.css";
import styles from "./Legend.module.css";

const DISPLAY_LIMIT = 40;

interface Props {
  lines: readonly ChartLine[];
  /** Keys of hidden lines. */
  hidden: ReadonlySet<string>;
  onToggle: (key: string) => void;
  /** Key of the highlighted line, or null. */
  onHighlight: (key: string | null) => void;
}

/** Legend: colour and dash beside each name. Hovering over a name highlights its line; a click hides it. */
export function Legend({ lines, hidden, onToggle, onHighlight }: Props) {
  return (
    <ul className={styles.legend} aria-label="Lines">
      {lines.slice(0, DISPLAY_LIMIT).map((line) => {
        const isShown = !hidden.has(line.key);
        return (
          <li key={line.key}>
            <button
              type="button"
              className={styles.line}
              aria-pressed={isShown}
              title={isShown ? "Hide this line" : "Show this line"}
              onClick={() => onToggle(line.key)}
              onPointerEnter={() => onHighlight(isShown ? line.key : null)}
              onPointerLeave={() => onHighlight(null)}
              onFocus={() => onHighlight(isShown ? line.key : null)}
              onBlur={() => onHighlight(null)}
            >
              <Swatch stroke={line.stroke} />
              <span>{escapeControl(line.label)}</span>
            </button>
          </li>
        );
      })}
      {lines.length > DISPLAY_LIMIT && <li className={typography.soft}>and {lines.length - DISPLAY_LIMIT} more</li>}
    </ul>
  );
}

/** A short piece of a line: its colour and its dash. */
export function Swatch({ stroke }: { stroke: Stroke }) {
  return (
    <svg className={styles.swatch} width="22" height="8" aria-hidden="true">
      <line
        x1="0"
        x2="22"
        y1="4"
        y2="4"
        stroke={stroke.color}
        strokeWidth="2"
        strokeDasharray={stroke.dash?.join(" ")}
      />
    </svg>
  );
}
