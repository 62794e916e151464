import type { ColumnSizingState } from "@tanstack/react-table";
import { useSyncExternalStore } from "react";

/** Column widths that the user changed, in pixels. Stored per browser, as screens differ. */
const KEY = "detent.columnWidths";
const MAX_COLUMNS = 200;
const listeners = new Set<() => void>();
let current: ColumnSizingState | null = null;

function read(): ColumnSizingState {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof stored !== "object" || stored === null) return {};
    return Object.fromEntries(
      Object.entries(stored).filter(([, width]) => typeof width === "number" && Number.isFinite(width) && width > 0),
    ) as ColumnSizingState;
  } catch {
    return {};
  }
}

export function columnSizes(): ColumnSizingState {
  return (current ??= read());
}

export function setColumnSizes(sizes: ColumnSizingState): void {
  current = Object.fromEntries(Object.entries(sizes).slice(-MAX_COLUMNS));
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // Without storage the widths last until the page is closed.
  }
  for (const listener of listeners) listener();
}

/** Reads the widths again, as after a reload. */
export function reloadColumnSizes(): void {
  current = null;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useColumnSizes(): ColumnSizingState {
  return useSyncExternalStore(subscribe, columnSizes);
}
