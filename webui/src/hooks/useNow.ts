import { useSyncExternalStore } from "react";
import { serverNow } from "@/live/serverClock";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
let shown = 0;

function look(): void {
  shown = Math.floor(serverNow() / 1000) * 1000;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    look();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
  };
}

/** The master's time in milliseconds, in whole seconds; one timer for the whole page. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => {
    // Nothing has counted since the last listener went, or ever: what was shown then is long past.
    if (timer === null) look();
    return shown;
  });
}
