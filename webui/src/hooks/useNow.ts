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

/** Returns the master's time in milliseconds, in whole seconds. The page has one timer. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => {
    // Nothing has updated the time since the last listener was removed.
    if (timer === null) look();
    return shown;
  });
}
