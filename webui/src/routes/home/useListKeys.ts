import { type RefObject, useCallback, useEffect, useLayoutEffect, useReducer, useRef } from "react";
import { type Action, useActions } from "@/keyboard/actions";
import type { Row } from "@/services/columns";
import type { Cursor } from "./cursor";
import type { RowAt } from "./RunGrid";
import type { ListShape } from "./sections";
import type { Selection } from "./selection";
import type { useBulk } from "./useBulk";

/** Keys that were pressed longer ago are dropped, since the user no longer expects their effect. */
const WAIT_MS = 5_000;

interface Keys {
  shape: ListShape;
  /** True if the list is the result of the newest query. */
  isCurrent: boolean;
  cursor: Cursor;
  setCursor: (cursor: Cursor) => void;
  rowAt: RefObject<RowAt>;
  selection: Selection;
  bulk: ReturnType<typeof useBulk>;
  filterInput: RefObject<HTMLInputElement | null>;
  open: (id: number) => void;
  compare: (ids: number[]) => void;
}

/**
 * The keys of the list. They act on the selection, else on the line of the cursor. Keys that are pressed before the
 * requested list is loaded wait for it, in order: a user who types a filter and continues means its result, not the
 * previous list. Returns the function to call when other rows are displayed.
 */
export function useListKeys({
  shape,
  isCurrent,
  cursor,
  setCursor,
  rowAt,
  selection,
  bulk,
  filterInput,
  open,
  compare,
}: Keys): () => void {
  const rowOn = (line: number) => {
    const found = rowAt.current(line);
    return found === "on its way" ? undefined : found;
  };
  const current = () => rowOn(cursor.line);
  const targets = (): number[] => {
    if (selection.ids.size > 0) return [...selection.ids];
    const row = current();
    return row ? [row.id] : [];
  };
  const step = (by: number) => {
    let next = Math.min(shape.length - 1, Math.max(0, cursor.line + by));
    while (shape.lineAt(next)?.kind === "group" && next + by >= 0 && next + by < shape.length) next += by;
    setCursor({ line: next, id: rowOn(next)?.id ?? null });
  };
  const withTargets = (run: (ids: number[]) => void) => () => {
    const ids = targets();
    if (ids.length > 0) run(ids);
  };
  const withRow = (run: (row: Row) => void) => () => {
    const row = current();
    if (row) run(row);
  };
  const onLines: Action[] = [
    { id: "down", title: "Next row", keys: "j", group: "List", hidden: true, run: () => step(1) },
    { id: "up", title: "Previous row", keys: "k", group: "List", hidden: true, run: () => step(-1) },
    {
      id: "select",
      title: "Select the row",
      keys: "x",
      group: "List",
      hidden: true,
      run: withRow((row) => selection.toggle(row.id)),
    },
    {
      id: "open",
      title: "Open the row",
      keys: "Enter",
      group: "List",
      hidden: true,
      run: withRow((row) => open(row.id)),
    },
    {
      id: "pause",
      title: "Pause the selected experiments",
      keys: "p",
      group: "List",
      run: withTargets((ids) => bulk.act("pause", ids)),
    },
    {
      id: "activate",
      title: "Activate the selected experiments",
      keys: "a",
      group: "List",
      run: withTargets((ids) => bulk.act("activate", ids)),
    },
    { id: "compare", title: "Compare the selected experiments", keys: "c", group: "List", run: withTargets(compare) },
  ];
  const isThere = () => isCurrent && rowAt.current(cursor.line) !== "on its way";
  const [, drawAgain] = useReducer((count: number) => count + 1, 0);
  const waiting = useRef<{ id: string; pressed: number }[]>([]);
  const newest = useRef({ onLines, isThere });
  const isDrawn = useRef(true);
  const goOn = useCallback(() => {
    if (waiting.current.length === 0 || !isDrawn.current || !newest.current.isThere()) return;
    if (waiting.current.some(({ pressed }) => Date.now() - pressed > WAIT_MS)) waiting.current = [];
    const next = waiting.current.shift();
    newest.current.onLines.find(({ id }) => id === next?.id)?.run();
    // The next key must see the effect of this one.
    isDrawn.current = false;
    drawAgain();
  }, []);
  useLayoutEffect(() => {
    newest.current = { onLines, isThere };
    isDrawn.current = true;
  });
  useEffect(goOn);
  const press = (id: string) => {
    waiting.current.push({ id, pressed: Date.now() });
    goOn();
  };
  useActions([
    {
      id: "filter",
      title: "Filter",
      keys: "/",
      group: "List",
      run: () => {
        waiting.current = [];
        filterInput.current?.focus();
      },
    },
    ...onLines.map((action) => ({ ...action, run: () => press(action.id) })),
    {
      id: "clear",
      title: "Clear the selection",
      keys: "Escape",
      group: "List",
      hidden: true,
      run: () => {
        waiting.current = [];
        selection.clear();
      },
    },
  ]);
  return goOn;
}
