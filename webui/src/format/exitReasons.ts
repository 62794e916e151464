const PHRASES: Record<string, string> = {
  preempted: "saved a checkpoint and exited",
  user_canceled: "canceled by a user",
  errored: "failed",
  system: "system failure",
  retries_canceled: "restarts canceled by a log policy",
  invalid_hp: "invalid hyperparameters",
  impossible: "cannot be scheduled",
  no_checkpoint: "saved no checkpoint before its agents left",
  searcher_stopped: "stopped by the search",
};

/** Returns the displayed exit reason; a reason that this page does not know is spelled as by the master. */
export function exitPhrase(reason: string): string {
  return Object.hasOwn(PHRASES, reason) ? PHRASES[reason]! : reason.replaceAll("_", " ");
}
