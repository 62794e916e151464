import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { CREATED, experimentOf, statusOf } from "@/testing/samples";
import { Overview } from "./Overview";

it("tells when an experiment was submitted, how long it waited and how long it ran", async () => {
  stopClock();
  fakeMaster({ "GET /detent/experiments/7/timeline": { now: CREATED, segments: [], marks: [] } });
  const status = statusOf({
    state: "STATE_PAUSED",
    submittedAt: "2026-11-21T09:00:00Z",
    waitedSeconds: 600,
    ranSeconds: 3600,
  });
  drawn(<Overview experiment={experimentOf()} status={status} />);
  await pass();
  const about = within(screen.getByRole("region", { name: "About" }));
  const fact = (name: string) => about.getByText(name).nextElementSibling?.textContent;
  expect(fact("Submitted")).toContain("2026-11-21");
  expect(fact("Waited")).toBe("10 min 00 s");
  expect(fact("Ran")).toBe("1 h 00 min");
});

it("says why a trial failed, on which attempt, and links to the place in the log", async () => {
  stopClock();
  fakeMaster({ "GET /detent/experiments/7/timeline": { now: CREATED, segments: [], marks: [] } });
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
    restarts: 1,
    attempt: 2,
    maxAttempts: 2,
    progress: 0,
    steps: 0,
    failure,
  } as const;
  drawn(<Overview experiment={experimentOf()} status={statusOf({ state: "STATE_ERROR", failure, trials: [trial] })} />);
  await pass();
  expect(screen.getByText(/ValueError: bad shape/).textContent).toContain(
    "Trial 9 failed on attempt 2 of 2: rank 3 on node-2: ValueError: bad shape (exit code 1)",
  );
  expect(screen.getByRole("link", { name: "Show in log" }).getAttribute("href")).toBe(
    "/experiments/7/trials/9/logs?attempt=7.9.3&line=41",
  );
});
