import type { LogLine } from "@/services/logs";
import type { Row } from "@/services/columns";
import type { Experiment, ExperimentStatus } from "@/services/experiments";
import type { Session } from "@/services/session";
import type { Trial } from "@/services/trials";

/** Objects of the master with all fields, of which a test changes some. */

export const CREATED = "2026-11-21T12:00:00Z";

export function experimentOf(change: Partial<Experiment> = {}): Experiment {
  return {
    id: 7,
    name: "digits",
    description: "",
    notes: "",
    labels: [],
    state: "STATE_ACTIVE",
    archived: false,
    startTime: CREATED,
    searcherType: "single",
    searcherMetric: "loss",
    username: "ana",
    numTrials: 1,
    config: {},
    originalConfig: "",
    jobId: "j",
    projectId: 1,
    projectOwnerId: 1,
    ...change,
  } as Experiment;
}

export function statusOf(change: Partial<ExperimentStatus> = {}): ExperimentStatus {
  return {
    id: 7,
    state: "STATE_RUNNING",
    text: "running",
    since: CREATED,
    now: CREATED,
    submittedAt: CREATED,
    waitedSeconds: 0,
    ranSeconds: 0,
    progress: 0.5,
    etaSeconds: null,
    archived: false,
    failure: null,
    trials: [],
    can: {
      pause: true,
      activate: false,
      cancel: true,
      kill: true,
      archive: false,
      unarchive: false,
      delete: false,
      fork: true,
      continue: false,
    },
    why: {
      activate: "it is running already",
      archive: "it has not ended",
      delete: "it has not ended",
      continue: "it is running; only an experiment that has ended can be continued",
      unarchive: "it is not archived",
    } as ExperimentStatus["why"],
    ...change,
  };
}

export function rowOf(id: number, change: Partial<Row> = {}): Row {
  return {
    id,
    name: `run ${id}`,
    description: "",
    state: "STATE_COMPLETED",
    archived: false,
    username: "ana",
    userId: 2,
    labels: [],
    startTime: CREATED,
    endTime: CREATED,
    progress: 1,
    numTrials: 1,
    trialId: id,
    searcherType: "single",
    searcherMetric: "loss",
    searcherMetricValue: 0.5,
    smallerIsBetter: true,
    forkedFrom: null,
    projectId: 1,
    resourcePool: "default",
    durationSeconds: 60,
    checkpointCount: 0,
    checkpointSize: 0,
    failure: null,
    note: null,
    times: null,
    cells: {},
    ...change,
  };
}

export function trialOf(id: number, change: Partial<Trial> = {}): Trial {
  return {
    id,
    experimentId: 7,
    hparams: {},
    restarts: 0,
    startTime: CREATED,
    state: "STATE_COMPLETED",
    totalBatchesProcessed: 100,
    searcherMetricValue: null,
    taskId: `7.${id}`,
    ...change,
  } as Trial;
}

export function lineOf(id: number, text: string, change: Partial<LogLine> = {}): LogLine {
  return {
    id,
    time: CREATED,
    level: "INFO",
    rank: 0,
    runId: 1,
    allocationId: "7.1.1",
    containerId: null,
    agentId: "agent",
    source: "task",
    stdtype: "stdout",
    text,
    length: text.length,
    ...change,
  };
}

export function sessionOf(change: Partial<Session> = {}): Session {
  return {
    user: { id: 2, username: "ana", admin: false, active: true, displayName: "", remote: false },
    version: "1.0",
    build: "",
    clusterName: "lab",
    payers: {},
    now: new Date().toISOString(),
    ...change,
  };
}
