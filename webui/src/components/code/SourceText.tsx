import { clsx } from "clsx";
import { escapeControl } from "@/format/escapeControl";
import sourceStyles from "./source.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const MAX_LINES = 20_000;

/** The text of a file with line numbers. It is always rendered as text. */
export function SourceText({ text, label }: { text: string; label: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div
      className={clsx(sourceStyles.source, layout.card, layout.scrollX)}
      role="region"
      aria-label={label}
      tabIndex={0}
    >
      {lines.slice(0, MAX_LINES).map((line, index) => (
        <div key={index} className={sourceStyles.line} data-testid="source-line">
          <span className={sourceStyles.number} aria-hidden="true">
            {index + 1}
          </span>
          <code>{escapeControl(line)}</code>
        </div>
      ))}
      {lines.length > MAX_LINES && <p className={typography.hint}>{lines.length - MAX_LINES} more lines.</p>}
    </div>
  );
}
