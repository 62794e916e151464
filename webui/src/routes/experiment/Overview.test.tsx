import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { SessionGate } from "@/app/session";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeCanvas } from "@/testing/fakeCanvas";
import { fakeMaster } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { CREATED, experimentOf, lineOf, sessionOf, statusOf, trialOf } from "@/testing/samples";
import type { MetricId } from "@/services/trials";
import { Overview } from "./Overview";

it("shows when an experiment was submitted, how long it waited and how long it ran", async () => {
  stopClock();
  fakeStreams();
  fakeMaster({
    "GET /detent/session": sessionOf({ payers: { slurm: "lea" } }),
    "GET /detent/experiments/7/timeline": { now: CREATED, segments: [], marks: [] },
  });
  const status = statusOf({
    state: "STATE_PAUSED",
    submittedAt: "2026-11-21T09:00:00Z",
    waitedSeconds: 600,
    ranSeconds: 3600,
  });
  drawn(
    <SessionGate>
      <Overview experiment={experimentOf({ resourcePool: "slurm" })} status={status} />
    </SessionGate>,
  );
  await pass();
  const about = within(screen.getByRole("region", { name: "About" }));
  const fact = (name: string) => about.getByText(name).nextElementSibling?.textContent;
  expect(fact("Submitted")).toContain("2026-11-21");
  expect(fact("Waited")).toBe("10 min 00 s");
  expect(fact("Ran")).toBe("1 h 00 min");
  expect(fact("Pool")).toBe("slurm, charged to lea");
});

it("shows why a trial failed, on which attempt, and links to the place in the log", async () => {
  stopClock();
  fakeStreams();
  fakeMaster({
    "GET /detent/session": sessionOf({ payers: { slurm: "lea" } }),
    "GET /detent/experiments/7/timeline": { now: CREATED, segments: [], marks: [] },
  });
  const failure = {
    trialId: 9,
    runId: 3,
    allocationId: "7.9.3",
    text: "rank 3 on node-2: ValueError: bad shape (exit code 1)",
    time: CREATED,
    logLine: 41,
  };
  const trial = {
    trialId: 9,
    state: "STATE_ERROR",
    text: "failed",
    since: CREATED,
    waiting: null,
    buildTaskId: null,
    restarts: 1,
    attempt: 2,
    maxAttempts: 2,
    progress: 0,
    steps: 0,
    note: null,
    failure,
  } as const;
  drawn(
    <SessionGate>
      <Overview experiment={experimentOf()} status={statusOf({ state: "STATE_ERROR", failure, trials: [trial] })} />
    </SessionGate>,
  );
  await pass();
  expect(screen.getByText(/ValueError: bad shape/).textContent).toContain(
    "Trial 9 failed on attempt 2 of 2: rank 3 on node-2: ValueError: bad shape (exit code 1)",
  );
  expect(screen.getByRole("link", { name: "Show in log" }).getAttribute("href")).toBe(
    "/experiments/7/trials/9/logs?attempt=7.9.3&line=41",
  );
});

it("shows the build of a trial's environment, and the last line of the installer", async () => {
  stopClock();
  fakeStreams();
  fakeCanvas();
  fakeMaster({
    "GET /detent/session": sessionOf({ payers: { slurm: "lea" } }),
    "GET /detent/experiments/7/timeline": { now: CREATED, segments: [], marks: [] },
    "GET /detent/experiments/7/why": { waiting: 0, first: null },
  });
  const trial = {
    trialId: 9,
    state: "STATE_BUILDING_ENVIRONMENT",
    text: "building environment: einops on agent gpu-1: Collecting einops",
    since: CREATED,
    waiting: "einops on agent gpu-1: Collecting einops",
    buildTaskId: "3f6f",
    restarts: 0,
    attempt: 1,
    maxAttempts: 6,
    progress: 0,
    steps: 0,
    note: null,
    failure: null,
  } as const;
  const status = statusOf({ state: "STATE_BUILDING_ENVIRONMENT", trials: [trial] });
  drawn(
    <SessionGate>
      <Overview experiment={experimentOf()} status={status} />
    </SessionGate>,
  );
  await pass();
  expect(screen.getByText(/waits for its environment/).textContent).toBe(
    "Trial 9 waits for its environment: einops on agent gpu-1: Collecting einops · whole log: det task logs 3f6f",
  );
});

it("begins with the results, their hyperparameters and the end of the log; the timeline follows", async () => {
  stopClock();
  fakeStreams();
  fakeCanvas();
  fakeMaster({
    "GET /detent/session": sessionOf({ payers: { slurm: "lea" } }),
    "GET /detent/experiments/7/timeline": { now: CREATED, segments: [], marks: [] },
    "GET /api/v1/experiments/7/trials": { trials: [trialOf(9)] },
    "GET /detent/experiments/7/metric-names": {
      metrics: ["accuracy", "epochs", "loss"].map((name) => ({ group: "validation", name, type: "number", count: 2 })),
      searcherMetric: "loss",
    },
    "POST /detent/series": { series: [], missing: [] },
    "POST /detent/trials/summaries": ({ body }) => ({
      trials: [
        {
          trialId: 9,
          experimentId: 7,
          hparams: { net: { width: 8 } },
          state: "STATE_COMPLETED",
          metrics: (body as { metrics: MetricId[] }).metrics.map((metric) => ({
            ...metric,
            last: 0.4,
            min: 0.25,
            max: 0.75,
            mean: 0.5,
            count: 2,
          })),
        },
      ],
    }),
    "GET /detent/trials/9/logs": ({ query }) => ({
      lines: query.get("limit") === "10" ? [lineOf(1, "the last words")] : [],
      atStart: true,
      atEnd: true,
    }),
  });
  const { container } = drawn(
    <SessionGate>
      <Overview experiment={experimentOf({ bestTrialId: 9 })} status={statusOf({ state: "STATE_COMPLETED" })} />
    </SessionGate>,
  );
  await pass();
  await pass();
  const values = within(screen.getByRole("region", { name: "Values" })).getAllByRole("row");
  expect(values.map((row) => row.textContent)).toEqual([
    "MetricBestLastMinMax",
    "loss0.250.40.250.75",
    "accuracy0.40.250.75",
  ]);
  expect(screen.getByRole("region", { name: "Hyperparameters" })).toHaveTextContent("net.width8");
  expect(screen.getByRole("region", { name: "Last log lines" })).toHaveTextContent("the last words");
  const order = [...container.querySelectorAll("section")].map((each) => each.getAttribute("aria-label"));
  expect(order.slice(1)).toEqual(["Values", "Hyperparameters", "Last log lines", "Timeline", "About", "Trials"]);
});
