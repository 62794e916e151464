import type { QueueEntry, QueueMove } from "@/services/cluster";

type Place = Pick<QueueEntry, "jobId" | "pool" | "state">;

/** Returns the waiting jobs of a pool, next one first. A job with several trials is listed once. */
export function waitingJobs(entries: readonly Place[], pool: string): string[] {
  const jobs = entries
    .filter((entry) => entry.pool === pool && entry.state === "STATE_QUEUED")
    .map(({ jobId }) => jobId);
  return [...new Set(jobs)];
}

/** Returns the change that moves a job one place up or down, or null at the end of the queue. */
export function oneStep(entries: readonly Place[], job: Place, step: -1 | 1): QueueMove | null {
  const jobs = waitingJobs(entries, job.pool);
  const anchor = jobs[jobs.indexOf(job.jobId) + step];
  if (anchor === undefined || !jobs.includes(job.jobId)) return null;
  return step === -1 ? { jobId: job.jobId, aheadOf: anchor } : { jobId: job.jobId, behindOf: anchor };
}

/** Returns the change that moves a job to the place of another one of its pool, or null if that changes nothing. */
export function toPlaceOf(entries: readonly Place[], job: Place, other: Place): QueueMove | null {
  const jobs = waitingJobs(entries, job.pool);
  const from = jobs.indexOf(job.jobId);
  const to = jobs.indexOf(other.jobId);
  if (other.pool !== job.pool || from < 0 || to < 0 || from === to) return null;
  return to < from ? { jobId: job.jobId, aheadOf: other.jobId } : { jobId: job.jobId, behindOf: other.jobId };
}
