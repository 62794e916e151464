export type Tone = "quiet" | "live" | "waiting" | "good" | "bad" | "stopped";

export interface Look {
  word: string;
  sign: string;
  tone: Tone;
}

const LOOKS: Record<string, Look> = {
  ACTIVE: { word: "active", sign: "●", tone: "live" },
  QUEUED: { word: "queued", sign: "◷", tone: "waiting" },
  PENDING: { word: "queued", sign: "◷", tone: "waiting" },
  ASSIGNED: { word: "starting", sign: "◔", tone: "waiting" },
  PULLING: { word: "pulling", sign: "◔", tone: "waiting" },
  STARTING: { word: "starting", sign: "◔", tone: "waiting" },
  RUNNING: { word: "running", sign: "▶", tone: "live" },
  PAUSING: { word: "pausing", sign: "◑", tone: "waiting" },
  PAUSED: { word: "paused", sign: "❚❚", tone: "quiet" },
  BACKING_OFF: { word: "backing off", sign: "↻", tone: "waiting" },
  STOPPING: { word: "stopping", sign: "◑", tone: "waiting" },
  STOPPING_COMPLETED: { word: "completing", sign: "◑", tone: "waiting" },
  STOPPING_CANCELED: { word: "stopping", sign: "◑", tone: "waiting" },
  STOPPING_KILLED: { word: "killing", sign: "◑", tone: "waiting" },
  STOPPING_ERROR: { word: "failing", sign: "◑", tone: "bad" },
  COMPLETED: { word: "completed", sign: "✓", tone: "good" },
  CANCELED: { word: "canceled", sign: "■", tone: "stopped" },
  ERROR: { word: "failed", sign: "✕", tone: "bad" },
  DELETING: { word: "deleting", sign: "◌", tone: "waiting" },
  DELETE_FAILED: { word: "delete failed", sign: "✕", tone: "bad" },
  DELETED: { word: "deleted", sign: "◌", tone: "quiet" },
};

/** How a state is shown; one that this page has never heard of, as the master spells it. */
export function stateLook(state: string): Look {
  const name = state.replace(/^STATE_/, "");
  return Object.hasOwn(LOOKS, name)
    ? LOOKS[name]!
    : { word: name.toLowerCase().replaceAll("_", " "), sign: "○", tone: "quiet" };
}

/** The states a person may filter by. */
export const STATE_WORDS = [
  "QUEUED",
  "STARTING",
  "RUNNING",
  "PAUSING",
  "PAUSED",
  "COMPLETED",
  "CANCELED",
  "ERROR",
] as const;

export function isLive(state: string): boolean {
  const { tone } = stateLook(state);
  return tone === "live" || tone === "waiting";
}
