import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";

export type ListedEvent = components["schemas"]["ListedEvent"];

export interface EventFilter {
  kind?: string | undefined;
  actor?: string | undefined;
  targetType?: string | undefined;
  targetId?: string | undefined;
  /** Words of the sentence, the actor, the kind or the target. */
  search?: string | undefined;
}

export const eventsQuery = (filter: EventFilter) =>
  infiniteQueryOptions({
    queryKey: ["events", filter],
    queryFn: ({ pageParam }) =>
      got(api.GET("/detent/events", { params: { query: { limit: 100, before: pageParam, ...filter } } })),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
