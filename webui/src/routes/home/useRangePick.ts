import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { type RefObject, useCallback, useRef } from "react";
import { messageOf } from "@/api/problem";
import { useSay } from "@/components/base/Toasts";
import { PAGE, type Row, rowsQuery } from "@/services/columns";
import { type Cursor, followed } from "./cursor";
import type { ListShape } from "./sections";
import type { Selection } from "./selection";

/** The displayed list. */
export interface ShownList {
  shape: ListShape;
  asked: readonly string[];
  rows: ReadonlyMap<number, Row>;
}

/** Selects or deselects the experiment on a line; with `isRange`, all from the line that was picked before. */
export type PickLine = (at: { line: number; id: number }, selected: boolean, isRange: boolean) => void;

export function useRangePick(shown: RefObject<ShownList>, selection: Selection): PickLine {
  const { add, drop } = selection;
  const queries = useQueryClient();
  const say = useSay();
  const before = useRef<Cursor | null>(null);
  return useCallback(
    (at, selected, isRange) => {
      const change = selected ? add : drop;
      const from = isRange ? before.current : null;
      before.current = at;
      change([at.id]);
      if (from === null) return;
      const { shape, asked, rows } = shown.current;
      // New experiments above shift the row that was picked before.
      idsBetween(queries, shape, asked, followed(from, rows).line, at.line)
        .then(change)
        .catch((error: unknown) => say({ text: messageOf(error), kind: "failed" }));
    },
    [shown, add, drop, queries, say],
  );
}

/** Returns the experiments of a range of rows, both ends included. Rows that were not loaded are fetched. */
async function idsBetween(
  queries: QueryClient,
  shape: ListShape,
  asked: readonly string[],
  from: number,
  to: number,
): Promise<number[]> {
  const ids: number[] = [];
  for (let line = Math.min(from, to); line <= Math.max(from, to); line += 1) {
    const found = shape.lineAt(line);
    if (found?.kind !== "row") continue;
    const page = Math.floor(found.index / PAGE);
    const { experiments } = await queries.fetchQuery(rowsQuery(found.section.finding, asked, page));
    const row = experiments[found.index % PAGE];
    if (row) ids.push(row.id);
  }
  return ids;
}
