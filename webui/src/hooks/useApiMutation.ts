import { type QueryKey, useMutation, type UseMutationOptions, useQueryClient } from "@tanstack/react-query";
import { messageOf } from "@/api/problem";
import { useSay } from "@/components/base/Toasts";

interface Options<Result, Variables> extends UseMutationOptions<Result, Error, Variables> {
  /** Queries that are refetched afterwards, also after a failure: the master may have applied a part. */
  invalidates: readonly QueryKey[];
}

/**
 * A mutation of data of the master. It stays pending until the invalidated queries are refetched. A failure is shown as
 * a toast, unless `onError` handles it.
 */
export function useApiMutation<Result, Variables>({ invalidates, ...options }: Options<Result, Variables>) {
  const queries = useQueryClient();
  const say = useSay();
  return useMutation<Result, Error, Variables>({
    // A browser that reports itself offline still reaches a master on its own machine.
    networkMode: "always",
    onError: (error) => say({ text: messageOf(error), kind: "failed" }),
    ...options,
    onSettled: () => Promise.all(invalidates.map((queryKey) => queries.invalidateQueries({ queryKey }))),
  });
}
