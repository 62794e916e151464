import type { LogLine, LogPage } from "@/services/logs";

/** A contiguous part of a log in memory, with ascending ids. */
export interface LogWindow {
  lines: readonly LogLine[];
  atStart: boolean;
  atEnd: boolean;
}

export const EMPTY: LogWindow = { lines: [], atStart: false, atEnd: false };
export const MAX_LINES = 20_000;

export function windowOf(page: LogPage): LogWindow {
  return { lines: page.lines, atStart: page.atStart, atEnd: page.atEnd };
}

/** Returns the window with an earlier page. Lines that it already has are not duplicated. */
export function withBefore(window: LogWindow, page: LogPage): LogWindow {
  const first = window.lines[0]?.id ?? Infinity;
  const lines = [...page.lines.filter((line) => line.id < first), ...window.lines];
  const cut = lines.length > MAX_LINES;
  return { lines: cut ? lines.slice(0, MAX_LINES) : lines, atStart: page.atStart, atEnd: window.atEnd && !cut };
}

/** Returns the window with a later page. If there are too many lines the oldest are dropped. */
export function withAfter(window: LogWindow, page: LogPage): LogWindow {
  const last = window.lines.at(-1)?.id ?? -Infinity;
  const lines = [...window.lines, ...page.lines.filter((line) => line.id > last)];
  const cut = lines.length > MAX_LINES;
  return { lines: cut ? lines.slice(-MAX_LINES) : lines, atStart: window.atStart && !cut, atEnd: page.atEnd };
}

export function indexOf(window: LogWindow, id: number): number {
  return window.lines.findIndex((line) => line.id === id);
}
