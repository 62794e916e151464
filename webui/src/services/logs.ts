import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";
import { masterUrl } from "@/browser/base";

export type LogLine = components["schemas"]["Line"];
export type LogPage = components["schemas"]["LogPage"];
export type LogExtent = components["schemas"]["LogExtent"];

export interface LogFilter {
  levels: readonly string[];
  rankIds: readonly number[];
  search: string;
  regex: boolean;
  /** Attempts, as allocations. */
  allocationIds: readonly string[];
}

export const NO_FILTER: LogFilter = { levels: [], rankIds: [], search: "", regex: false, allocationIds: [] };

export type LogPlace = { before: number } | { after: number } | { around: number } | Record<string, never>;

export async function fetchLogPage(
  trialId: number,
  filter: LogFilter,
  place: LogPlace,
  limit = 500,
  signal?: AbortSignal,
): Promise<LogPage> {
  const query = {
    ...place,
    limit,
    levels: [...filter.levels],
    rankIds: [...filter.rankIds],
    allocationIds: [...filter.allocationIds],
    ...(filter.search ? { search: filter.search, regex: filter.regex } : {}),
  };
  return got(
    api.GET("/detent/trials/{trial_id}/logs", {
      params: { path: { trial_id: trialId }, query: query },
      signal: signal ?? null,
    }),
  );
}

export const logPageQuery = (trialId: number, filter: LogFilter, place: LogPlace) =>
  queryOptions({
    queryKey: ["log page", trialId, filter, place],
    queryFn: () => fetchLogPage(trialId, filter, place),
    staleTime: 5_000,
    gcTime: 5_000,
    retry: false,
  });

/** Returns the present page of a log, or the page that was requested while the code of the page was loading. */
export async function takeLogPage(queries: QueryClient, ...of: Parameters<typeof logPageQuery>): Promise<LogPage> {
  const query = logPageQuery(...of);
  try {
    return await queries.fetchQuery(query);
  } finally {
    queries.removeQueries({ queryKey: query.queryKey, exact: true });
  }
}

export async function fetchFirstError(trialId: number): Promise<LogLine | null> {
  return (await got(api.GET("/detent/trials/{trial_id}/logs/first-error", { params: { path: { trial_id: trialId } } })))
    .line;
}

const WANDB_RUN = /View run\b.*?\bat:? (?:\u001b\[[\d;]*m)*(https?:\/\/[^\s\u001b]+)/;

/** The address of the Weights & Biases run that the log names: the first in the lines that one request may search. */
export const wandbRunQuery = (trialId: number) =>
  queryOptions({
    queryKey: ["wandb run", trialId],
    queryFn: async ({ signal }) => {
      const { lines } = await fetchLogPage(trialId, { ...NO_FILTER, search: "View run" }, { after: 0 }, 20, signal);
      return lines.map(({ text }) => WANDB_RUN.exec(text)?.[1]).find(Boolean) ?? null;
    },
    staleTime: 60_000,
    retry: false,
  });

export async function fetchExtent(trialId: number): Promise<LogExtent> {
  return got(api.GET("/detent/trials/{trial_id}/logs/extent", { params: { path: { trial_id: trialId } } }));
}

/** Returns the number of a line within its log, from 1. */
export async function fetchLineNumber(trialId: number, lineId: number): Promise<number | null> {
  const params = { path: { trial_id: trialId }, query: { line: lineId } };
  return (await got(api.GET("/detent/trials/{trial_id}/logs/extent", { params }))).number;
}

/** Returns the whole of a line that is truncated in a page. */
export async function fetchWholeLine(lineId: number): Promise<LogLine> {
  return (await got(api.GET("/detent/logs/lines/{line_id}", { params: { path: { line_id: lineId } } }))).line;
}

export function downloadUrl(trialId: number): string {
  return masterUrl(`/detent/trials/${trialId}/logs/download`);
}
