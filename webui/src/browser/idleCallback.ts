import { useEffect, useState } from "react";

const LATEST_MS = 1_000;
/** Fallback delay: while the page waits for the master the browser is idle as well. */
export const IDLE_DELAY_MS = 500;

/** Runs work after `after` milliseconds when the browser is idle. Returns a function that cancels it. */
export function whenIdle(work: () => void, after = 0): () => void {
  let forget = () => clearTimeout(timer);
  const timer = setTimeout(() => {
    if (typeof requestIdleCallback === "undefined") return work();
    const handle = requestIdleCallback(work, { timeout: LATEST_MS });
    forget = () => cancelIdleCallback(handle);
  }, after);
  return () => forget();
}

/** Returns false until the first render is complete and the browser is idle. */
export function useIdle(): boolean {
  const [idle, setIdle] = useState(false);
  useEffect(() => whenIdle(() => setIdle(true), IDLE_DELAY_MS), []);
  return idle;
}
