import { useState } from "react";
import type { Row } from "@/services/columns";

/** A line of the list, and the experiment that a person saw on it. */
export interface Cursor {
  /** -1 before the first step. */
  line: number;
  /** Null while the line is on its way. */
  id: number | null;
}

const NOWHERE: Cursor = { line: -1, id: null };

/** Where the cursor's experiment stands among these rows: a new one above must not put another under the next key. Pure. */
export function followed(cursor: Cursor, rows: ReadonlyMap<number, Pick<Row, "id">>): Cursor {
  const here = rows.get(cursor.line);
  if (here === undefined || here.id === cursor.id) return cursor;
  if (cursor.id !== null) for (const [line, row] of rows) if (row.id === cursor.id) return { line, id: row.id };
  return { line: cursor.line, id: here.id };
}

/** The cursor of the list that this filter finds; another filter, another list. */
export function useCursor(query: string): [Cursor, (cursor: Cursor) => void] {
  const [cursor, setCursor] = useState(NOWHERE);
  const [of, setOf] = useState(query);
  if (of === query) return [cursor, setCursor];
  setOf(query);
  setCursor(NOWHERE);
  return [NOWHERE, setCursor];
}
