import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";

export type StorageAnswer = components["schemas"]["StorageAnswer"];

const WHILE_FULL_MS = 5_000;
/** Fallback interval in case the change was not announced. The master announces it to connected pages. */
const OTHERWISE_MS = 60_000;

/** Refetched at every change of the cluster. */
export const storageQuery = queryOptions({
  queryKey: ["cluster", "storage"],
  queryFn: () => got(api.GET("/detent/storage")),
  refetchInterval: (query) => (query.state.data?.isWritable === false ? WHILE_FULL_MS : OTHERWISE_MS),
});
