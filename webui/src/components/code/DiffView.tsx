import { clsx } from "clsx";
import { diffLines } from "diff";
import { useMemo } from "react";
import { escapeControl } from "@/format/escapeControl";
import sourceStyles from "./source.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const AROUND = 3;

interface Line {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

/**
 * The differences between two texts with three lines of context. Signs, not only colours, mark added and removed lines.
 */
export function DiffView({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = useMemo(() => linesOf(before, after), [before, after]);
  if (lines.every((line) => line.kind === "same" || line.kind === "gap"))
    return <p className={typography.hint}>No differences.</p>;
  return (
    <div
      className={clsx(sourceStyles.source, layout.card, layout.scrollX)}
      role="region"
      aria-label={label}
      tabIndex={0}
    >
      {lines.map((line, index) => (
        <div key={index} className={clsx(sourceStyles.line, line.kind !== "same" && sourceStyles[line.kind])}>
          <span className={sourceStyles.number}>
            {line.kind === "added" ? "+" : line.kind === "removed" ? "−" : ""}
          </span>
          <code>{escapeControl(line.text)}</code>
        </div>
      ))}
    </div>
  );
}

export function linesOf(before: string, after: string): Line[] {
  const all: Line[] = diffLines(before, after, { maxEditLength: 5_000 })?.flatMap((part) =>
    part.value
      .replace(/\n$/, "")
      .split("\n")
      .map((text): Line => ({ kind: part.added ? "added" : part.removed ? "removed" : "same", text })),
  ) ?? [
    { kind: "removed", text: before },
    { kind: "added", text: after },
  ];
  const near = all.map((_, index) =>
    all.slice(Math.max(0, index - AROUND), index + AROUND + 1).some((line) => line.kind !== "same"),
  );
  const shown: Line[] = [];
  all.forEach((line, index) => {
    if (near[index]) shown.push(line);
    else if (shown.at(-1)?.kind !== "gap") shown.push({ kind: "gap", text: "…" });
  });
  return shown;
}
