import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { useSession } from "@/app/session";

/**
 * Text that was typed and not saved, or null. It outlives the component that shows it, so that a change of tab loses
 * nothing; it ends with the page. Somebody else who signs in does not see it.
 */
export function useDraft(name: string): [string | null, (next: (now: string | null) => string | null) => void] {
  const queries = useQueryClient();
  const { user } = useSession();
  const { data } = useQuery<string | null>({ queryKey: ["draft", user.id, name], enabled: false, gcTime: Infinity, staleTime: Infinity, initialData: null });
  const set = useCallback(
    (next: (now: string | null) => string | null) => queries.setQueryData<string | null>(["draft", user.id, name], (now) => next(now ?? null)),
    [queries, user.id, name],
  );
  return [data, set];
}
