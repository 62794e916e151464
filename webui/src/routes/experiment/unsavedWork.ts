import { duration } from "@/format/duration";
import type { ExperimentStatus, Timeline } from "@/services/experiments";

/** The work of a trial since its last checkpoint. */
export interface UnsavedWork {
  trialId: number;
  steps: number;
  /** The newest checkpoint, or null. */
  saved: { steps: number; time: number } | null;
}

const WITHOUT_WORK = new Set([
  "STATE_QUEUED",
  "STATE_BUILDING_ENVIRONMENT",
  "STATE_PULLING",
  "STATE_STARTING",
  "STATE_PAUSED",
  "STATE_COMPLETED",
  "STATE_CANCELED",
  "STATE_ERROR",
]);

/** Returns the trials whose work a kill would lose. Pure. */
export function withUnsavedWork(trials: ExperimentStatus["trials"]): ExperimentStatus["trials"] {
  return trials.filter((trial) => !WITHOUT_WORK.has(trial.state));
}

/** Returns the work that a kill would lose, for each running trial of the timeline, which has not all of a large
 * search. Pure. */
export function unsavedWork(trials: ExperimentStatus["trials"], { segments, marks }: Timeline): UnsavedWork[] {
  const drawn = new Set(segments.map((segment) => segment.trialId));
  return withUnsavedWork(trials)
    .filter((trial) => drawn.has(trial.trialId))
    .map(({ trialId, steps }) => {
      const saved = marks
        .filter((mark) => mark.kind === "checkpoint" && mark.trialId === trialId && mark.steps !== null)
        .at(-1);
      return { trialId, steps, saved: saved ? { steps: saved.steps ?? 0, time: Date.parse(saved.time) } : null };
    });
}

export function unsavedText({ trialId, steps, saved }: UnsavedWork, now: number): string {
  if (saved === null) return `Trial ${trialId}: all ${steps} steps, as it has no checkpoint yet`;
  const lost = Math.max(0, steps - saved.steps);
  return `Trial ${trialId}: ${lost} ${lost === 1 ? "step" : "steps"} since the checkpoint at step ${saved.steps}, ${duration(now - saved.time)} ago`;
}
