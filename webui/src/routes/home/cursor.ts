import { useState } from "react";
import type { Row } from "@/services/columns";

/** A line of the list, and the experiment that the user saw on it. */
export interface Cursor {
  /** -1 before the first step. */
  line: number;
  /** Null while the line is loading. */
  id: number | null;
}

const NOWHERE: Cursor = { line: -1, id: null };

/**
 * Returns the cursor at the present line of its experiment: a new row above must not put another experiment under the
 * next key. Pure.
 */
export function followed(cursor: Cursor, rows: ReadonlyMap<number, Pick<Row, "id">>): Cursor {
  const here = rows.get(cursor.line);
  if (here === undefined || here.id === cursor.id) return cursor;
  if (cursor.id !== null) for (const [line, row] of rows) if (row.id === cursor.id) return { line, id: row.id };
  return { line: cursor.line, id: here.id };
}

/** Returns the cursor of the list for this filter. Another filter has another cursor. */
export function useCursor(query: string): [Cursor, (cursor: Cursor) => void] {
  const [cursor, setCursor] = useState(NOWHERE);
  const [of, setOf] = useState(query);
  if (of === query) return [cursor, setCursor];
  setOf(query);
  setCursor(NOWHERE);
  return [NOWHERE, setCursor];
}
