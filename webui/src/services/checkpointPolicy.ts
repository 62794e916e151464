import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import { checkpointLists } from "./checkpoints";
import type { Experiment } from "./experiments";

/** Numbers of kept checkpoints: the best of the experiment, and the best and the newest of each trial. */
export interface CheckpointPolicy {
  saveExperimentBest: number;
  saveTrialBest: number;
  saveTrialLatest: number;
}

/** A checkpoint that a policy does not keep. */
export interface DoomedCheckpoint {
  uuid: string;
  trialId: number;
  steps: number;
  /** The searcher's metric of the validation at its step. */
  metric: number | null;
  size: number;
}

export interface PolicyPreview {
  metricName: string;
  checkpoints: DoomedCheckpoint[];
}

/** The preview in the spelling of the older product. */
interface WirePreview {
  metric_name: string;
  checkpoints: {
    UUID: string;
    TrialID: number;
    StepsCompleted: number;
    Resources: Record<string, number>;
    ValidationMetrics: Record<string, unknown> | null;
  }[];
}

/** Returns the policy of an experiment's configuration, with 0, 1 and 1 for missing numbers. */
export function policyOf({ config }: Experiment): CheckpointPolicy {
  const storage = (config.checkpoint_storage ?? {}) as Record<string, unknown>;
  const number = (name: string, otherwise: number) => {
    const value = storage[name];
    return typeof value === "number" ? value : otherwise;
  };
  return {
    saveExperimentBest: number("save_experiment_best", 0),
    saveTrialBest: number("save_trial_best", 1),
    saveTrialLatest: number("save_trial_latest", 1),
  };
}

export const policyPreviewQuery = (experimentId: number, policy: CheckpointPolicy) =>
  queryOptions({
    queryKey: [...checkpointLists(experimentId), "policy", policy],
    queryFn: async (): Promise<PolicyPreview> => {
      const query = {
        save_experiment_best: policy.saveExperimentBest,
        save_trial_best: policy.saveTrialBest,
        save_trial_latest: policy.saveTrialLatest,
      };
      const path = { experiment_id: experimentId };
      const found = await got(api.GET("/experiments/{experiment_id}/preview_gc", { params: { path, query } }));
      return previewOf(found as unknown as WirePreview);
    },
  });

function previewOf({ metric_name: metricName, checkpoints }: WirePreview): PolicyPreview {
  return {
    metricName,
    checkpoints: checkpoints.map((each) => {
      const metric = each.ValidationMetrics?.[metricName];
      return {
        uuid: each.UUID,
        trialId: each.TrialID,
        steps: each.StepsCompleted,
        metric: typeof metric === "number" ? metric : null,
        size: Object.values(each.Resources).reduce((sum, size) => sum + size, 0),
      };
    }),
  };
}

export async function setCheckpointPolicy(experimentId: number, policy: CheckpointPolicy): Promise<void> {
  await got(
    api.PATCH("/api/v1/experiments/{experiment_id}", {
      params: { path: { experiment_id: experimentId } },
      body: { checkpointStorage: policy },
    }),
  );
}
