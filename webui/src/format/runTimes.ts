import { isLive } from "./states";

export interface RunTimes {
  waitedSeconds: number;
  ranSeconds: number;
  /** The time up to which both are counted. */
  now: string;
}

const WAITING = new Set(["STATE_QUEUED", "STATE_BUILDING_ENVIRONMENT", "STATE_PULLING", "STATE_STARTING"]);

/**
 * Returns how long an experiment waited and ran up to `now`, in milliseconds. The time of its present `state` continues
 * to count. Pure.
 */
export function runTimes(times: RunTimes, state: string, now: number): { waited: number; ran: number } {
  const since = Math.max(0, now - Date.parse(times.now));
  const isWaiting = WAITING.has(state);
  return {
    waited: times.waitedSeconds * 1000 + (isWaiting ? since : 0),
    ran: times.ranSeconds * 1000 + (isLive(state) && !isWaiting ? since : 0),
  };
}
