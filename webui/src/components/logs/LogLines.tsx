import { clsx } from "clsx";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef } from "react";
import { usePreferences, zone } from "@/browser/preferences";
import { clock } from "@/format/dateTime";
import { grouped } from "@/format/number";
import type { LogLine } from "@/services/logs";
import { LogText } from "./LogText";
import { indexOf, type LogWindow } from "./window";
import typography from "@/styles/typography.module.css";
import styles from "./LogLines.module.css";

interface Props {
  window: LogWindow;
  search: string;
  /** The line to scroll to. */
  target: number | null;
  /** Lines of the highlighted error. */
  block: ReadonlySet<number>;
  /** Number of the first line within the log; null if unknown. */
  firstNumber: number | null;
  /** Number of requests for the start of the log. */
  starts: number;
  /** True if long lines wrap; else the view scrolls sideways. */
  wrap: boolean;
  follow: boolean;
  onScrolledUp: () => void;
  older: () => Promise<void>;
  newer: () => Promise<void>;
  onChoose: (line: LogLine) => void;
}

const LEVELS: ReadonlyMap<string, string | undefined> = new Map([
  ["WARNING", styles.warning],
  ["ERROR", styles.error],
  ["CRITICAL", styles.critical],
]);
const HEIGHT = 20;
const NEAR = 40;

/** The visible lines. More are fetched when the start or the end comes near. */
export function LogLines(props: Props) {
  const { window, search, target, block, firstNumber, starts, wrap, follow, onScrolledUp, older, newer, onChoose } =
    props;
  const frame = useRef<HTMLDivElement>(null);
  const timeZone = zone(usePreferences());
  const { lines } = window;
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => HEIGHT,
    overscan: 30,
  });
  useEffect(() => virtual.measure(), [virtual, wrap]);
  const hasRanks = useMemo(() => lines.some(({ rank }) => rank !== null), [lines]);
  const first = lines[0]?.id ?? null;
  const before = useRef<{ first: number | null; count: number }>({ first: null, count: 0 });
  useLayoutEffect(() => {
    // Lines added before push the others down, so the scroll position is restored.
    const old = before.current;
    if (frame.current && old.first !== null && first !== null && first < old.first) {
      const added = indexOf(window, old.first);
      if (added > 0) frame.current.scrollTop += added * HEIGHT;
    }
    before.current = { first, count: lines.length };
  }, [first, lines.length, window]);
  useEffect(() => {
    if (target === null) return;
    const index = indexOf(window, target);
    if (index >= 0) virtual.scrollToIndex(index, { align: "center" });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once per jump, not with every new line
  }, [target, first]);
  useEffect(() => {
    if (starts > 0) virtual.scrollToOffset(0);
  }, [starts, virtual]);
  const opened = useRef(false);
  useEffect(() => {
    // A log opens at its end, where the newest lines are.
    if (opened.current || lines.length === 0) return;
    opened.current = true;
    if (target === null && window.atEnd) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [lines.length, target, window.atEnd, virtual]);
  useEffect(() => {
    if (follow && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follow, lines.length, virtual]);
  const items = virtual.getVirtualItems();
  const digits = `${String((firstNumber ?? 0) + lines.length).length}ch`;
  const top = items[0]?.index ?? 0;
  const bottom = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (lines.length === 0) return undefined;
    // In the next frame, after the list has scrolled to the target of a jump.
    const soon = requestAnimationFrame(() => {
      const shown = virtual.getVirtualItems();
      if ((shown[0]?.index ?? 0) < NEAR && !window.atStart) void older();
      if ((shown.at(-1)?.index ?? 0) > lines.length - NEAR && !window.atEnd) void newer();
    });
    return () => cancelAnimationFrame(soon);
  }, [top, bottom, lines.length, window, older, newer, virtual]);
  return (
    <div
      ref={frame}
      className={styles.frame}
      tabIndex={0}
      role="log"
      aria-label="Log lines"
      aria-live="off"
      onWheel={(event) => event.deltaY < 0 && onScrolledUp()}
    >
      <div className={clsx(styles.body, wrap && styles.wrapped)} style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const line = lines[item.index]!;
          const isTarget = line.id === target;
          return (
            <div
              key={line.id}
              ref={wrap ? virtual.measureElement : undefined}
              data-index={item.index}
              className={clsx(
                styles.line,
                LEVELS.get(line.level.toUpperCase()),
                block.has(line.id) && styles.block,
                isTarget && styles.target,
              )}
              data-block={block.has(line.id) || undefined}
              data-testid="log-line"
              data-line={line.id}
              style={{ top: item.start }}
              onClick={() => onChoose(line)}
              aria-current={isTarget || undefined}
            >
              {firstNumber !== null && (
                <span className={styles.number} style={{ minWidth: digits }} data-testid="line-number">
                  {firstNumber + item.index}
                </span>
              )}
              <time className={styles.time} title={line.time}>
                {clock(Date.parse(line.time), timeZone)}
              </time>
              {hasRanks && <span className={styles.rank}>{line.rank === null ? "" : `rank ${line.rank}`}</span>}
              <span className={styles.level}>{sourceOf(line)}</span>
              <LogText text={line.text} search={search} />
              {line.length > line.text.length && (
                <span className={typography.tag}>{grouped(line.length)} characters</span>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function sourceOf(line: LogLine): string {
  if (line.source === "master" || line.source === "agent") return line.source;
  return line.level ? line.level : line.stdtype === "stderr" ? "stderr" : "";
}
