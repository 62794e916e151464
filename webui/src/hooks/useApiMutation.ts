import { type QueryKey, useMutation, type UseMutationOptions, useQueryClient } from "@tanstack/react-query";
import { messageOf } from "@/api/problem";
import { useSay } from "@/components/base/Toasts";

interface Options<Result, Variables> extends UseMutationOptions<Result, Error, Variables> {
  /** Queries that are refetched afterwards, also after a failure: the master may have done a part of it. */
  invalidates: readonly QueryKey[];
}

/**
 * A mutation of what the master keeps. It stays pending until what it invalidates is refetched. A failure is shown as a
 * toast, unless `onError` shows it elsewhere.
 */
export function useApiMutation<Result, Variables>({ invalidates, ...options }: Options<Result, Variables>) {
  const queries = useQueryClient();
  const say = useSay();
  return useMutation<Result, Error, Variables>({
    // A browser that calls itself offline still reaches a master on its own machine.
    networkMode: "always",
    onError: (error) => say({ text: messageOf(error), kind: "failed" }),
    ...options,
    onSettled: () => Promise.all(invalidates.map((queryKey) => queries.invalidateQueries({ queryKey }))),
  });
}
