import type { Goal, Searcher } from "@/components/board/direction";
import type { Run } from "@/components/board/lines";
import { flatten } from "@/format/nested";
import type { TrialSummary } from "@/services/trials";
import type { Chosen } from "./chosen";

/** A compared run: a trial, chosen itself or as the best of its experiment. */
export interface Compared {
  trialId: number;
  experimentId: number;
  name: string;
  state: string;
  chosenAs: "experiment" | "trial";
  hparams: Record<string, unknown>;
  searcher: Searcher;
}

/** Returns the chosen runs that have a summary, in the order of `trialIds`. Pure. */
export function comparedOf(
  trialIds: readonly number[],
  summaries: readonly TrialSummary[],
  { trials }: Pick<Chosen, "trials">,
): Compared[] {
  const byTrial = new Map(summaries.map((summary) => [summary.trialId, summary]));
  return trialIds.flatMap((trialId) => {
    const summary = byTrial.get(trialId);
    if (!summary) return [];
    return {
      trialId,
      experimentId: summary.experimentId,
      name: summary.experimentName,
      state: summary.state,
      chosenAs: trials.includes(trialId) ? "trial" : "experiment",
      hparams: summary.hparams,
      searcher: {
        metric: summary.searcherMetric,
        smallerIsBetter: summary.smallerIsBetter,
        goals: goalsOf(summary.metrics),
      },
    };
  });
}

/** Returns the directions of a summary's metrics, as far as its experiment's configuration defines them. */
function goalsOf(metrics: TrialSummary["metrics"]): Record<string, Goal> {
  const known = metrics.filter(({ smallerIsBetter }) => typeof smallerIsBetter === "boolean");
  return Object.fromEntries(
    known.map(({ name, smallerIsBetter }) => [name, smallerIsBetter === true ? "minimize" : "maximize"]),
  );
}

const SEEDS = /(^|[._])(seed|experiment_seed|random_seed)$/;

/** Returns the common key of runs that differ only by their seed. */
export function seedGroup(run: Pick<Compared, "name" | "hparams">): string {
  const rest = Object.entries(flatten(run.hparams))
    .filter(([name]) => !SEEDS.test(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return rest.length > 0 ? rest.join(" ") : run.name;
}

export function comparedRuns(compared: readonly Compared[]): Run[] {
  return compared.map((run) => ({
    trialId: run.trialId,
    label: run.chosenAs === "trial" ? `trial ${run.trialId} of ${run.name}` : `${run.experimentId} ${run.name}`,
    group: seedGroup(run),
  }));
}
