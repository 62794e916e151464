import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";
import { heardTime } from "@/live/serverClock";

type Schemas = components["schemas"];
export type Experiment = Schemas["Experiment"];
export type ExperimentStatus = Schemas["ExperimentStatus"];
export type TrialStatus = Schemas["TrialStatus"];
export type Timeline = Schemas["Timeline"];
export type EffectiveConfig = Schemas["EffectiveConfig"];
export type SearchBracket = Schemas["SearchBracket"];
export type SearchDecision = Schemas["SearchDecision"];
export type ShownCode = Schemas["ShownCode"];
export type StartingChanges = Schemas["StartingChanges"];
export type WaitBlocker = Schemas["WaitBlocker"];
export type ConfigDiagnostic = Schemas["ConfigDiagnostic"];
export type Verb = keyof Schemas["AllowedVerbs"];

export type Action = Schemas["ActionGroup"]["actions"][number];

/** Keys start with the names in the stream: a change of experiment 7 refetches everything under ["experiment", "7"]. */
const key = (id: number, ...rest: unknown[]) => ["experiment", String(id), ...rest] as const;

const at = (id: number) => ({ params: { path: { experiment_id: id } } });

export const experimentQuery = (id: number) =>
  queryOptions({
    queryKey: key(id, "detail"),
    queryFn: async () => (await got(api.GET("/api/v1/experiments/{experiment_id}", at(id)))).experiment,
  });

const SILENCE_MS = 60_000;
const BUILD_MS = 2_000;

export const statusQuery = (id: number) =>
  queryOptions({
    queryKey: key(id, "status"),
    queryFn: async () => {
      const status = await got(api.GET("/detent/experiments/{experiment_id}/status", at(id)));
      heardTime(Date.parse(status.now));
      return status;
    },
    // No event announces that a trial is silent, or the output of an environment build.
    refetchInterval: ({ state }) =>
      state.data?.trials.some((trial) => trial.buildTaskId)
        ? BUILD_MS
        : state.data?.state === "STATE_RUNNING"
          ? SILENCE_MS
          : false,
  });

/**
 * Returns why this user cannot change the experiment, such as "only ana (the owner) …"; null if they can, or if the
 * reasons differ.
 */
export function readOnlyReason({ can, why }: Pick<ExperimentStatus, "can" | "why">): string | null {
  const verbs = ["pause", "activate", "cancel", "kill", "archive", "unarchive", "continue"] as const;
  const [reason, ...others] = new Set(verbs.map((verb) => (can[verb] ? null : why[verb])));
  return others.length === 0 ? (reason ?? null) : null;
}

/** Why the experiment's trials wait for slots. */
export const whyQuery = (id: number) =>
  queryOptions({
    queryKey: key(id, "why"),
    queryFn: () => got(api.GET("/detent/experiments/{experiment_id}/why", at(id))),
  });

/** Brackets and decisions change with the reports that the search compares. */
export const searchQuery = (id: number) =>
  queryOptions({
    queryKey: ["metrics", String(id), "search"],
    queryFn: () => got(api.GET("/detent/experiments/{experiment_id}/search", at(id))),
  });

/** Progress and the remaining time change with the metrics, not with the state. */
export const progressQuery = (id: number) =>
  queryOptions({
    queryKey: ["metrics", String(id), "status"],
    queryFn: () => got(api.GET("/detent/experiments/{experiment_id}/status", at(id))),
  });

export const timelineQuery = (id: number) =>
  queryOptions({
    queryKey: key(id, "timeline"),
    queryFn: () => got(api.GET("/detent/experiments/{experiment_id}/timeline", at(id))),
  });

export const configQuery = (id: number) =>
  queryOptions({
    queryKey: key(id, "config"),
    queryFn: () => got(api.GET("/detent/experiments/{experiment_id}/config", at(id))),
  });

export const trialsQuery = (id: number) =>
  queryOptions({
    queryKey: key(id, "trials"),
    queryFn: async () => (await got(api.GET("/api/v1/experiments/{experiment_id}/trials", at(id)))).trials,
  });

export const fileTreeQuery = (id: number) =>
  queryOptions({
    queryKey: ["context", String(id), "tree"],
    queryFn: async () => (await got(api.GET("/api/v1/experiments/{experiment_id}/file_tree", at(id)))).files,
  });

export const fileQuery = (id: number, path: string) =>
  queryOptions({
    queryKey: ["context", String(id), "file", path],
    queryFn: () =>
      got(
        api.GET("/detent/experiments/{experiment_id}/file", {
          params: { path: { experiment_id: id }, query: { path } },
        }),
      ),
  });

/** The state of the code from which the experiment was created; null if none is stored. It does not change. */
export const codeQuery = (id: number, diff: boolean) =>
  queryOptions({
    queryKey: ["context", String(id), "code", diff],
    queryFn: async () =>
      (
        await got(
          api.GET("/detent/experiments/{experiment_id}/code", {
            params: { path: { experiment_id: id }, query: { diff } },
          }),
        )
      ).code ?? null,
  });

export async function pauseExperiment(id: number): Promise<void> {
  await got(api.POST("/api/v1/experiments/{experiment_id}/pause", at(id)));
}

export async function activateExperiment(id: number): Promise<void> {
  await got(api.POST("/api/v1/experiments/{experiment_id}/activate", at(id)));
}

export async function cancelExperiment(id: number): Promise<void> {
  await got(api.POST("/api/v1/experiments/{experiment_id}/cancel", at(id)));
}

export async function killExperiment(id: number): Promise<void> {
  await got(api.POST("/api/v1/experiments/{experiment_id}/kill", at(id)));
}

/** Continues an ended experiment with its present configuration. */
export async function continueExperiment(id: number): Promise<void> {
  await got(api.POST("/api/v1/experiments/continue", { body: { id } }));
}

export async function archiveExperiment(id: number, archived: boolean): Promise<void> {
  if (archived) await got(api.POST("/api/v1/experiments/{experiment_id}/archive", at(id)));
  else await got(api.POST("/api/v1/experiments/{experiment_id}/unarchive", at(id)));
}

export async function deleteExperiment(id: number): Promise<void> {
  await got(api.DELETE("/api/v1/experiments/{experiment_id}", at(id)));
}

export type ExperimentChange = Partial<Pick<Experiment, "name" | "description" | "labels" | "notes">>;

export async function editExperiment(id: number, change: ExperimentChange): Promise<void> {
  await got(api.PATCH("/api/v1/experiments/{experiment_id}", { ...at(id), body: change }));
}

/** Returns every problem of a configuration, found by the master's own parser. */
export async function checkConfig(config: string): Promise<Schemas["ConfigCheck"]> {
  return got(api.POST("/detent/config/check", { body: { config } }));
}

/** Creates an experiment with the parent's context. Returns its id. */
export async function forkExperiment(parentId: number, config: string, activate: boolean): Promise<number> {
  const body = { parentId, config, activate };
  return (await got(api.POST("/api/v1/experiments", { body }))).experiment.id;
}
