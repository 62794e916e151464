const PHRASES: Record<string, string> = {
  preempted: "saved a checkpoint and exited",
  user_canceled: "canceled by a user",
  errored: "failed",
  system: "system failure",
  retries_canceled: "restarts canceled by a log policy",
  invalid_hp: "invalid hyperparameters",
  impossible: "cannot be scheduled",
  searcher_stopped: "stopped by the search",
};

/** How an exit reason is shown; one that this page does not know, as the master spells it. */
export function exitPhrase(reason: string): string {
  return Object.hasOwn(PHRASES, reason) ? PHRASES[reason]! : reason.replaceAll("_", " ");
}
