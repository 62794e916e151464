import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";
import { masterUrl } from "@/browser/base";

export type ListedCheckpoint = components["schemas"]["ListedCheckpoint"];

/** Returns the key of all lists of checkpoints, or of those of one experiment. */
export const checkpointLists = (experimentId?: number) =>
  experimentId === undefined ? ["experiments", "checkpoints"] : ["experiment", String(experimentId), "checkpoints"];

export const checkpointsQuery = (experimentId?: number) =>
  infiniteQueryOptions({
    queryKey: checkpointLists(experimentId),
    queryFn: ({ pageParam }) =>
      got(api.GET("/detent/checkpoints", { params: { query: { limit: 100, before: pageParam, experimentId } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });

/** Outputs of an experiment's trials. */
export const outputsQuery = (experimentId: number) =>
  infiniteQueryOptions({
    queryKey: ["experiment", String(experimentId), "outputs"],
    queryFn: ({ pageParam }) =>
      got(
        api.GET("/detent/experiments/{experiment_id}/outputs", {
          params: { path: { experiment_id: experimentId }, query: { limit: 100, before: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });

export interface CheckpointFile {
  path: string;
  size: number;
}

/** The files of a checkpoint by their paths, without folders. */
export const checkpointFilesQuery = (uuid: string) =>
  queryOptions({
    queryKey: ["checkpoint", uuid, "files"],
    queryFn: async (): Promise<CheckpointFile[]> => {
      const { checkpoint } = await got(api.GET("/api/v1/checkpoints/{uuid}", { params: { path: { uuid } } }));
      return Object.entries(checkpoint.resources)
        .filter(([path]) => !path.endsWith("/"))
        .map(([path, size]) => ({ path, size: Number(size) }))
        .sort((a, b) => (a.path < b.path ? -1 : 1));
    },
  });

/** Returns the address of an archive with all files of a checkpoint. */
export function checkpointUrl(uuid: string): string {
  return masterUrl(`/checkpoints/${uuid}`);
}

/** Returns the new state: DELETING while a task removes files that the master cannot reach. */
export async function deleteCheckpoint(uuid: string): Promise<string> {
  await got(api.DELETE("/api/v1/checkpoints", { body: { checkpointUuids: [uuid] } }));
  const { checkpoint } = await got(api.GET("/api/v1/checkpoints/{uuid}", { params: { path: { uuid } } }));
  return checkpoint.displayState;
}
