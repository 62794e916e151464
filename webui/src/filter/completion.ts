import { columnOf } from "./language";

/** The completion at the end of a filter. */
export interface Completion {
  kind: "column" | "value";
  /** The column whose values are completed; empty for the name of a column. */
  column: string;
  /** The part that is typed so far. */
  word: string;
  /** Everything before the word. */
  prefix: string;
}

const PARTS = /^(.*?)([^\s()"'=<>~!]*)$/s;
const BEFORE_VALUE = /([^\s()"'=<>~!]+)\s*(?:!=|!~|<=|>=|=|<|>|~)\s*$/;
const AFTER_PART = /(?:^|\(|\s(?:and|or))\s*$/i;

/** Returns the completion at the end of `source`; null if nothing can be completed. Pure. */
export function completionOf(source: string): Completion | null {
  const [, prefix = "", word = ""] = PARTS.exec(source) ?? [];
  if ((prefix.match(/"/g)?.length ?? 0) % 2 === 1 || (prefix.match(/'/g)?.length ?? 0) % 2 === 1) return null;
  const column = BEFORE_VALUE.exec(prefix)?.[1];
  if (column !== undefined) return { kind: "value", column: columnOf(column), word, prefix };
  return word !== "" && AFTER_PART.test(prefix) ? { kind: "column", column: "", word, prefix } : null;
}
