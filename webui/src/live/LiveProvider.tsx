import { partialMatchKey, type Query, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { api } from "@/api/client";
import { Problem } from "@/api/problem";
import { sessionEnded } from "@/api/sessionEnded";
import { whenIdle } from "@/browser/idleCallback";
import { type Stale, staleBy } from "./changes";
import { openEventSource } from "./eventSource";
import { RowUpdates } from "./rowUpdates";
import { LiveStream, type StreamState } from "./stream";
import { Throttle } from "./throttle";

const Live = createContext<LiveStream | null>(null);

/**
 * Opens the stream of a signed-in page and refetches the queries that its changes make stale. Closed while nobody is
 * signed in.
 */
export function LiveProvider({ children, signedIn = true }: { children: ReactNode; signedIn?: boolean }) {
  const queries = useQueryClient();
  const throttle = useMemo(() => new Throttle(), []);
  const rows = useMemo(() => new RowUpdates(queries, throttle), [queries, throttle]);
  const stream = useMemo(
    () =>
      new LiveStream(openEventSource, {
        onChanges: (changes) => {
          rows.add(changes);
          for (const change of changes)
            for (const stale of staleBy(change))
              throttle.run(stale.key.join("/"), stale.every, () => void renew(queries, stale));
        },
        onGap: () => void queries.invalidateQueries({ refetchType: asking() }),
        // No other mechanism retries queries that failed during the outage.
        onOpen: () => document.hidden || void queries.refetchQueries({ type: "active", predicate: hasFailed }),
        onSignedOut: () => sessionEnded.tell(),
        // The browser hides the reason of a failed stream; this request reports an ended session.
        onLost: () => void api.GET("/detent/session").catch(() => undefined),
      }),
    [queries, throttle, rows],
  );
  useEffect(() => {
    if (!signedIn) return undefined;
    // The first render has priority. The stream continues from the page's event, whenever it starts.
    const forget = whenIdle(stream.start);
    const onSight = () => {
      if (document.hidden) return;
      void queries.refetchQueries({ type: "active", stale: true });
      void queries.refetchQueries({ type: "active", predicate: hasFailed });
    };
    document.addEventListener("visibilitychange", onSight);
    const onShow = (event: PageTransitionEvent) => event.persisted && stream.start();
    window.addEventListener("online", stream.renew);
    window.addEventListener("pageshow", onShow);
    return () => {
      forget();
      document.removeEventListener("visibilitychange", onSight);
      window.removeEventListener("online", stream.renew);
      window.removeEventListener("pageshow", onShow);
      stream.stop();
      throttle.stop();
    };
  }, [stream, throttle, queries, signedIn]);
  return <Live value={stream}>{children}</Live>;
}

async function renew(queries: QueryClient, { key, first }: Stale): Promise<void> {
  const refetchType = asking();
  if (first) await queries.invalidateQueries({ queryKey: first, refetchType });
  const isRest = ({ queryKey }: Query) => !first || !partialMatchKey(queryKey, first);
  await queries.invalidateQueries({ queryKey: key, refetchType, predicate: isRest });
}

function hasFailed({ state }: Query): boolean {
  return (
    state.status === "error" &&
    state.fetchStatus === "idle" &&
    !(state.error instanceof Problem && state.error.status >= 400 && state.error.status < 500)
  );
}

/** A hidden tab only marks queries as stale. They are refetched when it becomes visible. */
function asking(): "active" | "none" {
  return document.hidden ? "none" : "active";
}

const OUTSIDE: StreamState = { connection: "connecting", since: null, outdated: false };

export function useStreamState(): StreamState {
  const stream = useContext(Live);
  return useSyncExternalStore(
    stream ? stream.subscribe : () => () => undefined,
    stream ? stream.snapshot : () => OUTSIDE,
  );
}
