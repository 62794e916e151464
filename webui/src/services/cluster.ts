import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";
import { heardTime } from "@/live/serverClock";
import { killTrial } from "./trials";

type Schemas = components["schemas"];
export type Overview = Schemas["ClusterOverview"];
export type OverviewAgent = Schemas["OverviewAgent"];
export type OverviewPool = Schemas["OverviewPool"];
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

/** With `drain`, running trials continue; without it they are killed. */
export async function enableAgent(id: string, enabled: boolean, drain: boolean): Promise<void> {
  const params = { path: { agent_id: id } };
  if (enabled) await got(api.POST("/api/v1/agents/{agent_id}/enable", { params }));
  else await got(api.POST("/api/v1/agents/{agent_id}/disable", { params, body: { drain } }));
}

export async function enableSlot(agentId: string, slotId: number, enabled: boolean, drain: boolean): Promise<void> {
  const params = { path: { agent_id: agentId, slot_id: String(slotId) } };
  if (enabled) await got(api.POST("/api/v1/agents/{agent_id}/slots/{slot_id}/enable", { params }));
  else await got(api.POST("/api/v1/agents/{agent_id}/slots/{slot_id}/disable", { params, body: { drain } }));
}

/** Ends a task at once; a trial ends by its own request. */
export async function killTask({ taskId, trialId }: QueueEntry): Promise<void> {
  if (trialId === null) await got(api.POST("/api/v1/tasks/{task_id}/kill", { params: { path: { task_id: taskId } } }));
  else await killTrial(trialId);
}

/** A place in the queue: right ahead of, or right behind, another job of the same pool. */
export type QueueMove = Pick<Schemas["QueueControl"], "jobId" | "aheadOf" | "behindOf">;

export async function moveJob(move: QueueMove): Promise<void> {
  await got(api.POST("/api/v1/job-queues", { body: { updates: [move] } }));
}
