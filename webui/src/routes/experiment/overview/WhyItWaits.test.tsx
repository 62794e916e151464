import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { WhyItWaits } from "./WhyItWaits";

const FIRST = {
  allocationId: "7.9.1",
  taskId: "7.9",
  trialId: 9,
  pool: "gpu",
  slots: 4,
  priority: 42,
  reason: "needs 4 slots; 2 of 8 free in pool 'gpu'",
  ahead: 2,
  blockers: [
    { allocationId: "3.1.1", name: "trial 1 of experiment 3 (digits)", why: "running", secondsLeft: 3700 },
    { allocationId: "5.2.1", name: "trial 2 of experiment 5 (mnist)", why: "ahead", secondsLeft: null },
  ],
  startsInSeconds: 3700,
  unknown: "",
  changes: {
    slots: 2,
    priority: 41,
    maxSlots: null,
    pools: ["cpu"],
    agents: ["gpu-2"],
    slotIds: [{ agentId: "gpu-1", slotId: 3 }],
    pausedJobs: [{ jobId: "a1", name: "experiment 3 (digits)" }],
  },
};

async function shown(first: unknown) {
  stopClock();
  fakeMaster({ "GET /detent/experiments/7/why": { waiting: 1, first } });
  drawn(<WhyItWaits experimentId={7} />);
  await pass();
}

const items = () => screen.getAllByRole("listitem").map((item) => item.textContent);

it("names the blockers, the expected start, and each change that starts the trial", async () => {
  await shown(FIRST);
  const card = within(screen.getByRole("region", { name: "Why it waits" }));
  expect(card.getByText(/2 ahead in the queue of pool gpu, priority 42/).textContent).toContain("in about 1 h 01 min");
  expect(items()).toEqual([
    "trial 1 of experiment 3 (digits) holds slots that it could use, for about 1 h 01 min more",
    "trial 2 of experiment 5 (mnist) comes first and waits for the same slots",
    "2 slots instead of 4",
    "Priority 41",
    "Pool cpu",
    "Enabling agent gpu-2",
    "Enabling slot 3 of agent gpu-1",
    "Pausing experiment 3 (digits), once it has left",
  ]);
});

it("reports that nothing is known and no single change helps", async () => {
  const changes = { slots: null, priority: null, maxSlots: null, pools: [], agents: [], slotIds: [], pausedJobs: [] };
  const unknown = "nobody knows how long 3.1.1 will run";
  await shown({ ...FIRST, ahead: 0, startsInSeconds: null, unknown, blockers: [], changes });
  expect(screen.getByText(/First in the queue/).textContent).toContain(`Expected start unknown: ${unknown}.`);
  expect(screen.getByText("No single change.")).toBeVisible();
});

it("is absent when no trial waits", async () => {
  await shown(null);
  expect(screen.queryByRole("region")).toBeNull();
});
