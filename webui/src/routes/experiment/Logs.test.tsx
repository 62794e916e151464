import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { drawn } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { experimentOf, trialOf } from "@/testing/samples";
import Logs from "./Logs";

vi.mock("@/components/logs/TrialLog", () => ({
  TrialLog: ({ trial }: { trial: { id: number } }) => <p>log of {trial.id}</p>,
}));

it.each([
  ["the trial that failed first", ["STATE_COMPLETED", "STATE_ERROR", "STATE_ERROR"], 1, 2],
  ["the best trial where none failed", ["STATE_COMPLETED", "STATE_COMPLETED", "STATE_RUNNING"], 1, 1],
  ["the newest trial where none is the best", ["STATE_RUNNING", "STATE_RUNNING", "STATE_RUNNING"], null, 3],
])("the log of a search opens at %s", async (_, states, bestTrialId, shown) => {
  const trials = states.map((state, at) => trialOf(at + 1, { state: state as "STATE_RUNNING" }));
  fakeMaster({ "GET /api/v1/experiments/7/trials": { trials } });
  drawn(<Logs experiment={experimentOf({ numTrials: 3, bestTrialId })} />);
  expect(await screen.findByText(`log of ${shown}`)).toBeVisible();
});
