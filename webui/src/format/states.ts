export type Tone = "quiet" | "live" | "waiting" | "good" | "bad" | "stopped";

/** Names of the icons of states, which are among those of the component `Icon`. */
export type StateIcon =
  | "check"
  | "clock"
  | "close"
  | "dashedRing"
  | "dot"
  | "half"
  | "pause"
  | "play"
  | "quarter"
  | "restart"
  | "ring"
  | "square";

export interface Look {
  word: string;
  icon: StateIcon;
  tone: Tone;
}

const LOOKS: Record<string, Look> = {
  ACTIVE: { word: "active", icon: "dot", tone: "live" },
  QUEUED: { word: "queued", icon: "clock", tone: "waiting" },
  PENDING: { word: "queued", icon: "clock", tone: "waiting" },
  ASSIGNED: { word: "starting", icon: "quarter", tone: "waiting" },
  BUILDING_ENVIRONMENT: { word: "building environment", icon: "quarter", tone: "waiting" },
  PULLING: { word: "pulling", icon: "quarter", tone: "waiting" },
  STARTING: { word: "starting", icon: "quarter", tone: "waiting" },
  RUNNING: { word: "running", icon: "play", tone: "live" },
  PAUSING: { word: "pausing", icon: "half", tone: "waiting" },
  PAUSED: { word: "paused", icon: "pause", tone: "quiet" },
  BACKING_OFF: { word: "backing off", icon: "restart", tone: "waiting" },
  STOPPING: { word: "stopping", icon: "half", tone: "waiting" },
  STOPPING_COMPLETED: { word: "completing", icon: "half", tone: "waiting" },
  STOPPING_CANCELED: { word: "canceling", icon: "half", tone: "waiting" },
  STOPPING_KILLED: { word: "killing", icon: "half", tone: "waiting" },
  STOPPING_ERROR: { word: "failing", icon: "half", tone: "bad" },
  COMPLETED: { word: "completed", icon: "check", tone: "good" },
  CANCELED: { word: "canceled", icon: "square", tone: "stopped" },
  ERROR: { word: "failed", icon: "close", tone: "bad" },
  DELETING: { word: "deleting", icon: "dashedRing", tone: "waiting" },
  DELETE_FAILED: { word: "delete failed", icon: "close", tone: "bad" },
  // States of agents and slots.
  CONNECTED: { word: "connected", icon: "dot", tone: "live" },
  NOT_CONNECTED: { word: "not connected", icon: "close", tone: "bad" },
  LEAVING: { word: "leaving", icon: "half", tone: "waiting" },
  DRAINING: { word: "draining", icon: "half", tone: "waiting" },
  DISABLED: { word: "disabled", icon: "square", tone: "stopped" },
  IN_USE: { word: "in use", icon: "play", tone: "live" },
  FREE: { word: "free", icon: "ring", tone: "good" },
  OCCUPIED: { word: "used by others", icon: "half", tone: "waiting" },
  UNHEALTHY: { word: "unhealthy", icon: "close", tone: "bad" },
  DELETED: { word: "deleted", icon: "dashedRing", tone: "quiet" },
};

/** Returns the look of a state; a state that this page does not know is spelled as by the master. */
export function stateLook(state: string): Look {
  const name = state.replace(/^STATE_/, "");
  return Object.hasOwn(LOOKS, name)
    ? LOOKS[name]!
    : { word: name.toLowerCase().replaceAll("_", " "), icon: "ring", tone: "quiet" };
}

/**
 * Returns the rest of a status text whose state is shown next to it: "failed: trial 4" next to "failed" becomes "trial
 * 4". Its end is removed if it is shown below.
 */
export function withoutState(text: string, state: string, below?: string | null): string {
  const { word } = stateLook(state);
  const rest = text === word ? "" : text.startsWith(`${word}: `) ? text.slice(word.length + 2) : text;
  return below && rest.endsWith(below) ? rest.slice(0, -below.length).replace(/: $/, "") : rest;
}

/** States that a filter accepts. */
export const STATE_WORDS = [
  "QUEUED",
  "BUILDING_ENVIRONMENT",
  "STARTING",
  "RUNNING",
  "PAUSING",
  "PAUSED",
  "COMPLETED",
  "CANCELED",
  "ERROR",
] as const;

/** Returns true while the experiment makes progress. Waiting and ended ones need no progress bar. */
export function isUnderWay(state: string): boolean {
  return /^(STATE_)?(ACTIVE|RUNNING|PAUSING|STOPPING\w*)$/.test(state);
}

export function hasEnded(state: string): boolean {
  return /^(STATE_)?(COMPLETED|CANCELED|ERROR|DELETE\w*|DELETING)$/.test(state);
}

export function isLive(state: string): boolean {
  const { tone } = stateLook(state);
  return tone === "live" || tone === "waiting";
}
