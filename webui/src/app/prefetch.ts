import type { QueryClient } from "@tanstack/react-query";
import { firstRows } from "@/routes/home/sections";
import { readFilter, readState } from "@/routes/home/listState";
import { experimentQuery, statusQuery } from "@/services/experiments";
import { sessionQuery } from "@/services/session";
import { trialQuery } from "@/services/trials";
import { basePath } from "./base";

/** Asks for what this address will show before anything is drawn: the way to the master is as long as drawing takes. */
export function prefetch(queries: QueryClient, { pathname, search }: { pathname: string; search: string }): void {
  void queries.prefetchQuery(sessionQuery);
  const place = pathname.slice(basePath.length - 1);
  const [, kind, id] = /^\/(experiments|trials)\/(\d+)(?:\/|$)/.exec(place) ?? [];
  const [, trial] = /^\/experiments\/\d+\/trials\/(\d+)/.exec(place) ?? [];
  if (place === "/") startList(queries, new URLSearchParams(search));
  else if (trial || kind === "trials") void queries.prefetchQuery(trialQuery(Number(trial ?? id)));
  else if (kind === "experiments") {
    void queries.prefetchQuery(experimentQuery(Number(id)));
    void queries.prefetchQuery(statusQuery(Number(id)));
  }
}

function startList(queries: QueryClient, params: URLSearchParams): void {
  const state = readState(params);
  const { filter, problem } = readFilter(state.query);
  if (!problem && state.group === "") void queries.prefetchQuery(firstRows(state, filter));
}
