import { useEffect, useState } from "react";

const LATEST_MS = 1_000;
/** A page that waits for the master is idle too; by then it has its answers, or they take long anyway. */
export const IDLE_DELAY_MS = 500;

/** What can wait until nothing else is to be done, and for so many milliseconds. Answers how it is forgotten. */
export function whenIdle(work: () => void, after = 0): () => void {
  let forget = () => clearTimeout(timer);
  const timer = setTimeout(() => {
    if (typeof requestIdleCallback === "undefined") return work();
    const handle = requestIdleCallback(work, { timeout: LATEST_MS });
    forget = () => cancelIdleCallback(handle);
  }, after);
  return () => forget();
}

/** False while the first look goes on. */
export function useIdle(): boolean {
  const [idle, setIdle] = useState(false);
  useEffect(() => whenIdle(() => setIdle(true), IDLE_DELAY_MS), []);
  return idle;
}
