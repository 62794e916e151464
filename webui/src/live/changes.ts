import type { QueryKey } from "@tanstack/react-query";

/** One thing that changed, as the stream names it. */
export interface Change {
  kind: string;
  id: string | number;
}

/** A set of queries to ask again, and the least time between two times, in milliseconds. */
export interface Stale {
  key: QueryKey;
  /** Of these, what is asked for before all others: the state that a person waits to see. */
  first?: QueryKey;
  every: number;
}

const STATES = 150;
const FIGURES = 2_000;
/** Rows are asked for by `RowUpdates`. These are what a list is grouped by, what is selected, what can be done to it, and the names in a dialog. */
const LISTS: Stale[] = ["groups", "ids", "allowed", "names"].map((part) => ({
  key: ["experiments", part],
  every: 1_000,
}));
/** A first report of a new name may come at any time, and hardly ever does. */
const NAMES = 10_000;

/**
 * What a change makes stale. Keys start with the kind of thing and its id, so that one page asks again for what it
 * shows and for nothing else. Figures of a running trial come many times a second and are asked for less often.
 */
export function staleBy(change: Change): Stale[] {
  const id = String(change.id);
  switch (change.kind) {
    case "experiment":
      return [{ key: ["experiment", id], first: ["experiment", id, "status"], every: STATES }, ...LISTS];
    case "metrics":
      return [
        { key: ["metrics", id], every: FIGURES },
        { key: ["metric-names", id], every: NAMES },
      ];
    case "logs":
      return [{ key: ["logs", id], every: 300 }];
    case "cluster":
      return [{ key: ["cluster"], every: 300 }];
    case "events":
      return [{ key: ["events"], every: 1_000 }];
    case "columns":
      return [{ key: ["columns"], every: 30_000 }];
    case "deleted":
      return [
        { key: ["experiment", id], every: STATES },
        { key: ["experiments"], every: STATES },
      ];
    default:
      // A newer master may tell of kinds that this page has never heard of.
      return [];
  }
}
