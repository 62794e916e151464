import type { QueryKey } from "@tanstack/react-query";

/** A change in the terms of the stream. */
export interface Change {
  kind: string;
  id: string | number;
}

/** Queries to refetch, and the minimum interval in milliseconds. */
export interface Stale {
  key: QueryKey;
  /** Queries of these that are refetched first: the state that a user waits for. */
  first?: QueryKey;
  every: number;
}

const STATES = 150;
const FIGURES = 2_000;
/**
 * `RowUpdates` refetches rows. These are the groups of a list, its selection, its allowed actions, and the names in a
 * dialog.
 */
const LISTS: Stale[] = ["groups", "ids", "allowed", "names"].map((part) => ({
  key: ["experiments", part],
  every: 1_000,
}));
/** The first report of a new name may arrive at any time, but is rare. */
const NAMES = 10_000;

/**
 * Returns the queries that a change makes stale. Keys start with the kind of object and its id, so that a page
 * refetches only the data that it shows. Metrics of a running trial change many times a second and are refetched less
 * often.
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
      // A newer master may send kinds that this page does not know.
      return [];
  }
}
