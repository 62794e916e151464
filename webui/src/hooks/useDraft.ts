import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { sessionQuery } from "@/services/session";

/** Stored outside of the query cache, which notifies its readers late: a text field must not wait. */
const drafts = new WeakMap<QueryClient, Map<string, string>>();

function draftsOf(queries: QueryClient): Map<string, string> {
  const found = drafts.get(queries) ?? new Map<string, string>();
  drafts.set(queries, found);
  return found;
}

/**
 * Returns text that was typed and not saved, or null. It outlives the component that shows it, so that a change of tab
 * loses nothing, and ends with the page. Another user who signs in does not see it.
 */
export function useDraft(name: string): [string | null, (next: (now: string | null) => string | null) => void] {
  const queries = useQueryClient();
  const key = `${queries.getQueryData(sessionQuery.queryKey)?.user.id} ${name}`;
  const [draft, setDraft] = useState(() => draftsOf(queries).get(key) ?? null);
  const change = useCallback(
    (next: (now: string | null) => string | null) => {
      const kept = draftsOf(queries);
      const value = next(kept.get(key) ?? null);
      if (value === null) kept.delete(key);
      else kept.set(key, value);
      setDraft(value);
    },
    [queries, key],
  );
  return [draft, change];
}
