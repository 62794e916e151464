import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";

export type ListedCheckpoint = components["schemas"]["ListedCheckpoint"];

export const checkpointsQuery = (experimentId?: number) =>
  infiniteQueryOptions({
    queryKey:
      experimentId === undefined ? ["experiments", "checkpoints"] : ["experiment", String(experimentId), "checkpoints"],
    queryFn: ({ pageParam }) =>
      got(api.GET("/detent/checkpoints", { params: { query: { limit: 100, before: pageParam, experimentId } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
