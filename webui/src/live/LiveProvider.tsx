import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { sessionEnded } from "@/api/sessionEnded";
import { whenIdle } from "@/app/idle";
import { staleBy } from "./changes";
import { openSource } from "./source";
import { LiveStream, type StreamState } from "./stream";
import { Throttle } from "./throttle";

const Live = createContext<LiveStream | null>(null);

/** Holds the stream of a signed-in page and turns its changes into queries that are asked again; rests while nobody is signed in. */
export function LiveProvider({ children, signedIn = true }: { children: ReactNode; signedIn?: boolean }) {
  const queries = useQueryClient();
  const throttle = useMemo(() => new Throttle(), []);
  const stream = useMemo(
    () =>
      new LiveStream(openSource, {
        onChanges: (changes) => {
          for (const change of changes)
            for (const { key, every } of staleBy(change))
              throttle.run(key.join("/"), every, () => void queries.invalidateQueries({ queryKey: key, refetchType: asking() }));
        },
        onGap: () => void queries.invalidateQueries({ refetchType: asking() }),
        onSignedOut: () => sessionEnded.tell(),
      }),
    [queries, throttle],
  );
  useEffect(() => {
    if (!signedIn) return undefined;
    // The first look comes first: the stream goes on from where that was, whenever it starts.
    const forget = whenIdle(stream.start);
    const onSight = () => document.hidden || void queries.refetchQueries({ type: "active", stale: true });
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
