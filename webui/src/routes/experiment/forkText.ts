import { isMap, parseDocument } from "yaml";

interface Trial {
  id: number;
  hparams: Record<string, unknown>;
  hasCheckpoint: boolean;
}

/** Returns the initial configuration of a fork: the parent's own text with its comments, under a new name. Pure. */
export function forkText(submitted: string, parentId: number, trial?: Trial): string {
  const document = parseDocument(submitted);
  if (document.errors.length > 0 || !isMap(document.contents)) return submitted;
  const name: unknown = document.get("name");
  document.set(
    "name",
    trial
      ? `Fork of trial ${trial.id}`
      : `Fork of ${typeof name === "string" && name ? name : `experiment ${parentId}`}`,
  );
  if (!trial) return document.toString();
  document.set("hyperparameters", document.createNode(trial.hparams));
  const searcher: unknown = document.get("searcher");
  if (isMap(searcher)) {
    for (const key of [
      "max_trials",
      "max_concurrent_trials",
      "max_rungs",
      "divisor",
      "mode",
      "bracket_rungs",
      "num_rungs",
      "max_time",
      "time_metric",
      "stop_once",
    ])
      searcher.delete(key);
    searcher.set("name", "single");
    if (trial.hasCheckpoint) searcher.set("source_trial_id", trial.id);
  }
  return document.toString();
}
