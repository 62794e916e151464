import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";
import { masterUrl } from "@/browser/base";

type Schemas = components["schemas"];
export type Trial = Schemas["Trial"];
export type Attempt = Schemas["Attempt"];
export type TrialMark = Schemas["TrialMark"];
export type TrialSummary = Schemas["TrialSummary"];
export interface MetricId {
  group: string;
  name: string;
}

const at = (id: number) => ({ params: { path: { trial_id: id } } });

/** Under its experiment's key, since the stream names experiments. */
const key = (experimentId: number, id: number, ...rest: unknown[]) =>
  ["experiment", String(experimentId), "trial", id, ...rest] as const;

/** The first query of a trial, which returns its experiment. */
export const trialQuery = (id: number) =>
  queryOptions({
    queryKey: ["trial", id],
    queryFn: async () => (await got(api.GET("/api/v1/trials/{trial_id}", at(id)))).trial,
  });

export const trialDetailQuery = (experimentId: number, id: number) =>
  queryOptions({
    queryKey: key(experimentId, id, "detail"),
    queryFn: async () => (await got(api.GET("/api/v1/trials/{trial_id}", at(id)))).trial,
  });

export const attemptsQuery = (experimentId: number, id: number) =>
  queryOptions({
    queryKey: key(experimentId, id, "attempts"),
    queryFn: async () => (await got(api.GET("/detent/trials/{trial_id}/attempts", at(id)))).attempts,
  });

export const marksQuery = (experimentId: number, id: number) =>
  queryOptions({
    queryKey: key(experimentId, id, "marks"),
    queryFn: async () => (await got(api.GET("/detent/trials/{trial_id}/marks", at(id)))).marks,
  });

export const trialMetricNamesQuery = (experimentId: number, id: number) =>
  queryOptions({
    queryKey: ["metric-names", String(experimentId), id],
    queryFn: () => got(api.GET("/detent/trials/{trial_id}/metric-names", at(id))),
  });

export const experimentMetricNamesQuery = (id: number) =>
  queryOptions({
    queryKey: ["metric-names", String(id)],
    queryFn: () =>
      got(api.GET("/detent/experiments/{experiment_id}/metric-names", { params: { path: { experiment_id: id } } })),
  });

export const summariesQuery = (
  experimentId: number | "many",
  trialIds: readonly number[],
  metrics: readonly MetricId[] | null,
) =>
  queryOptions({
    queryKey: ["metrics", String(experimentId), "summaries", trialIds, metrics],
    queryFn: async () =>
      (
        await got(
          api.POST("/detent/trials/summaries", {
            body: { trialIds: [...trialIds], metrics: metrics ? [...metrics] : null },
          }),
        )
      ).trials,
    enabled: trialIds.length > 0,
  });

export async function killTrial(id: number): Promise<void> {
  await got(api.POST("/api/v1/trials/{trial_id}/kill", at(id)));
}

/** Returns the address at which a signed-in browser opens a port of a task. */
export function pageUrl(taskId: string, port: number): string {
  return masterUrl(`/detent/tasks/${encodeURIComponent(taskId)}/enter?port=${port}`);
}
