import { partialMatchKey, type Query, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { api } from "@/api/client";
import { Problem } from "@/api/problem";
import { sessionEnded } from "@/api/sessionEnded";
import { whenIdle } from "@/app/idleCallback";
import { type Stale, staleBy } from "./changes";
import { openEventSource } from "./eventSource";
import { RowUpdates } from "./rowUpdates";
import { LiveStream, type StreamState } from "./stream";
import { Throttle } from "./throttle";

const Live = createContext<LiveStream | null>(null);

/** Holds the stream of a signed-in page and turns its changes into queries that are asked again; rests while nobody is signed in. */
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
        // Queries that failed during the outage are not retried by anything else.
        onOpen: () => document.hidden || void queries.refetchQueries({ type: "active", predicate: hasFailed }),
        onSignedOut: () => sessionEnded.tell(),
        // Whose session ended while it was being opened is told so by any other answer.
        onLost: () => void api.GET("/detent/session").catch(() => undefined),
      }),
    [queries, throttle, rows],
  );
  useEffect(() => {
    if (!signedIn) return undefined;
    // The first look comes first: the stream goes on from where that was, whenever it starts.
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

/** A tab behind others only remembers what is stale: it is asked for when somebody looks. */
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
