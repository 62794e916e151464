import { escapeControl } from "@/format/escapeControl";

const MOST_LINES = 20_000;

/** Text of a file, line by line with numbers; never anything but text. */
export function SourceText({ text, label }: { text: string; label: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div className="source card scroll-x" role="region" aria-label={label} tabIndex={0}>
      {lines.slice(0, MOST_LINES).map((line, index) => (
        <div key={index} className="source-line">
          <span className="source-number" aria-hidden="true">
            {index + 1}
          </span>
          <code>{escapeControl(line)}</code>
        </div>
      ))}
      {lines.length > MOST_LINES && <p className="hint">{lines.length - MOST_LINES} more lines.</p>}
    </div>
  );
}
