import type { QueryClient } from "@tanstack/react-query";
import type { LoaderFunctionArgs, ShouldRevalidateFunctionArgs } from "react-router";
import { readSearch, startOf, windowFilter } from "@/components/logs/logAddress";
import { prefetchCurves } from "@/routes/compare/prefetchCurves";
import { readFilter, readState } from "@/routes/home/listState";
import { firstRows } from "@/routes/home/sections";
import { checkpointsQuery } from "@/services/checkpoints";
import { overviewQuery } from "@/services/cluster";
import { experimentQuery, statusQuery } from "@/services/experiments";
import { logPageQuery } from "@/services/logs";
import { sessionQuery } from "@/services/session";
import { trialQuery } from "@/services/trials";
import { usersQuery } from "@/services/users";

/**
 * Loaders of the routes. Each starts the first queries of its page while the code of the page is loading. None waits
 * for the answers: the page itself shows loading, failures and the sign-in.
 */
export function makeLoaders(queries: QueryClient) {
  const loader = (start: (args: LoaderFunctionArgs) => Promise<unknown>[]) => ({
    loader: (args: LoaderFunctionArgs) => {
      // The page's own useQuery shows a failure.
      for (const query of start(args)) query.catch(() => undefined);
      return null;
    },
    shouldRevalidate: isAnotherObject,
  });
  return {
    session: loader(() => [queries.query(sessionQuery)]),
    list: loader(({ request }) => {
      const state = readState(new URL(request.url).searchParams);
      const { filter, problem } = readFilter(state.query);
      return problem || state.group !== "" ? [] : [queries.query(firstRows(state, filter))];
    }),
    experiment: loader(({ params }) => {
      const id = idOf(params.experimentId);
      return id === null ? [] : [queries.query(experimentQuery(id)), queries.query(statusQuery(id))];
    }),
    trial: loader(({ params, request }) => {
      const id = idOf(params.trialId);
      if (id === null) return [];
      const { pathname, searchParams } = new URL(request.url);
      const page = () => logPageQuery(id, windowFilter(readSearch(searchParams)), startOf(searchParams));
      return [queries.query(trialQuery(id)), ...(pathname.endsWith("/logs") ? [queries.query(page())] : [])];
    }),
    compare: loader(({ request }) => [prefetchCurves(queries, new URL(request.url).searchParams)]),
    cluster: loader(() => [queries.query(overviewQuery)]),
    checkpoints: loader(() => [queries.infiniteQuery(checkpointsQuery())]),
    users: loader(() => [queries.query(usersQuery)]),
  };
}

function idOf(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}

/** The page handles a change of tab or filter itself, and the stream reports stale data. */
function isAnotherObject({ currentParams, nextParams }: ShouldRevalidateFunctionArgs): boolean {
  return currentParams.experimentId !== nextParams.experimentId || currentParams.trialId !== nextParams.trialId;
}
