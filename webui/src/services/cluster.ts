import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";
import { heardTime } from "@/live/serverClock";

type Schemas = components["schemas"];
export type Overview = Schemas["ClusterOverview"];
export type OverviewAgent = Schemas["OverviewAgent"];
export type OverviewSlot = Schemas["OverviewSlot"];
export type QueueEntry = Schemas["QueueEntry"];
export type SlotHold = Schemas["SlotHold"];
export type SlotUsage = Schemas["SlotUsage"];

export const overviewQuery = queryOptions({
  queryKey: ["cluster", "overview"],
  queryFn: async () => {
    const overview = await got(api.GET("/detent/cluster/overview"));
    heardTime(Date.parse(overview.now));
    return overview;
  },
});

/** `from` and `to` as RFC 3339. */
export const holdsQuery = (from: string, to: string) =>
  queryOptions({
    queryKey: ["cluster", "holds", from, to],
    queryFn: () => got(api.GET("/detent/cluster/holds", { params: { query: { from, to } } })),
  });

export const usageQuery = (from: string, to: string, buckets: number) =>
  queryOptions({
    queryKey: ["cluster", "usage", from, to, buckets],
    queryFn: () => got(api.GET("/detent/cluster/usage", { params: { query: { from, to, buckets } } })),
  });
