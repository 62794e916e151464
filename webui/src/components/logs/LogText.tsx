import { clsx } from "clsx";
import { memo } from "react";
import { spansOf } from "./ansi";
import styles from "./LogText.module.css";

/** The text of a line with terminal colours and highlighted matches. */
export const LogText = memo(function LogText({ text, search }: { text: string; search: string }) {
  return (
    <code className={styles.text}>
      {spansOf(text).map((span, index) => (
        <span key={index} className={classesOf(span.looks)}>
          {search ? <Marked text={span.text} search={search} /> : span.text}
        </span>
      ))}
    </code>
  );
});

/** Highlights matches like the search of the master, ignoring case. */
function Marked({ text, search }: { text: string; search: string }) {
  const parts = text.split(new RegExp(`(${search.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")})`, "gi"));
  return parts.map((part, index) =>
    index % 2 === 1 ? <mark key={index}>{part}</mark> : <span key={index}>{part}</span>,
  );
}

function classesOf(looks: readonly string[]): string {
  return clsx(looks.map((look) => styles[look]));
}
