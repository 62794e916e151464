import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { sessionEnded } from "@/api/sessionEnded";
import { masterUrl } from "@/app/base";
import { staleBy } from "./changes";
import { LiveStream, type StreamState } from "./stream";
import { Throttle } from "./throttle";

const Live = createContext<LiveStream | null>(null);

function openEventSource(lastEventId: string): EventSource {
  const query = lastEventId ? `?lastEventId=${encodeURIComponent(lastEventId)}` : "";
  return new EventSource(masterUrl(`/detent/stream${query}`));
}

/** Holds the stream of a signed-in page and turns its changes into queries that are asked again; rests while nobody is signed in. */
export function LiveProvider({ children, signedIn = true }: { children: ReactNode; signedIn?: boolean }) {
  const queries = useQueryClient();
  const throttle = useMemo(() => new Throttle(), []);
  const stream = useMemo(
    () =>
      new LiveStream(openEventSource, {
        onChanges: (changes) => {
          for (const change of changes)
            for (const { key, every } of staleBy(change))
              throttle.run(key.join("/"), every, () => void queries.invalidateQueries({ queryKey: key }));
        },
        onGap: () => void queries.invalidateQueries(),
        onSignedOut: () => sessionEnded.tell(),
      }),
    [queries, throttle],
  );
  useEffect(() => {
    if (!signedIn) return undefined;
    stream.start();
    // A laptop that wakes up has a dead connection and does not know it yet.
    window.addEventListener("online", stream.start);
    return () => {
      window.removeEventListener("online", stream.start);
      stream.stop();
      throttle.stop();
    };
  }, [stream, throttle, signedIn]);
  return <Live value={stream}>{children}</Live>;
}

const OUTSIDE: StreamState = { connection: "connecting", since: null, outdated: false };

export function useStreamState(): StreamState {
  const stream = useContext(Live);
  return useSyncExternalStore(
    stream ? stream.subscribe : () => () => undefined,
    stream ? stream.snapshot : () => OUTSIDE,
  );
}
