import type { RefObject } from "react";
import { type Action, useActions } from "@/keyboard/actions";
import type { Row } from "@/services/columns";
import type { ListShape } from "./sections";
import type { Selection } from "./selection";
import type { useBulk } from "./useBulk";

interface Keys {
  shape: ListShape;
  cursor: number;
  setCursor: (line: number) => void;
  rowAt: RefObject<(line: number) => Row | undefined>;
  selection: Selection;
  bulk: ReturnType<typeof useBulk>;
  filterInput: RefObject<HTMLInputElement | null>;
  open: (id: number) => void;
  compare: (ids: number[]) => void;
}

/** The list by keys: they act on what is selected, else on the line of the cursor. */
export function useListKeys({ shape, cursor, setCursor, rowAt, selection, bulk, filterInput, open, compare }: Keys): void {
  const current = () => rowAt.current(cursor);
  const targets = (): number[] => {
    if (selection.ids.size > 0) return [...selection.ids];
    const row = current();
    return row ? [row.id] : [];
  };
  const step = (by: number) => {
    let next = Math.min(shape.length - 1, Math.max(0, cursor + by));
    while (shape.lineAt(next)?.kind === "group" && next + by >= 0 && next + by < shape.length) next += by;
    setCursor(next);
  };
  const withTargets = (run: (ids: number[]) => void) => () => {
    const ids = targets();
    if (ids.length > 0) run(ids);
  };
  const withRow = (run: (row: Row) => void) => () => {
    const row = current();
    if (row) run(row);
  };
  const actions: Action[] = [
    { id: "filter", title: "Filter", keys: "/", group: "List", run: () => filterInput.current?.focus() },
    { id: "down", title: "Next line", keys: "j", group: "List", hidden: true, run: () => step(1) },
    { id: "up", title: "Line before", keys: "k", group: "List", hidden: true, run: () => step(-1) },
    { id: "select", title: "Select the line", keys: "x", group: "List", hidden: true, run: withRow((row) => selection.toggle(row.id)) },
    { id: "open", title: "Open the line", keys: "Enter", group: "List", hidden: true, run: withRow((row) => open(row.id)) },
    { id: "pause", title: "Pause what is selected", keys: "p", group: "List", run: withTargets((ids) => void bulk.act("pause", ids)) },
    { id: "activate", title: "Activate what is selected", keys: "a", group: "List", run: withTargets((ids) => void bulk.act("activate", ids)) },
    { id: "compare", title: "Compare what is selected", keys: "c", group: "List", run: withTargets(compare) },
    { id: "clear", title: "Select nothing", keys: "Escape", group: "List", hidden: true, run: () => selection.clear() },
  ];
  useActions(actions);
}
