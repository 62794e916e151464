import { fireEvent, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { SessionGate } from "@/app/session";
import type { Experiment } from "@/services/experiments";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { type Asked, fakeMaster, Refusal } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { CREATED, experimentOf, sessionOf } from "@/testing/samples";
import Checkpoints from "./Checkpoints";

const PREVIEW = "GET /experiments/7/preview_gc";
const PATCH = "PATCH /api/v1/experiments/7";
const OUTPUTS = "GET /detent/experiments/7/outputs";
const OUTPUTS_OF_TRIAL = {
  trialId: 4,
  uuid: "0000-9",
  time: CREATED,
  size: 2_000,
  files: 3,
  folders: ["runs", "logs"],
};
const CONFIG = { checkpoint_storage: { save_experiment_best: 2, save_trial_best: 1, save_trial_latest: 3 } };

/** Returns a preview with three checkpoints less the number of the latest to keep. */
function preview({ query }: Asked) {
  const latest = Number(query.get("save_trial_latest"));
  return {
    metric_name: "loss",
    checkpoints: Array.from({ length: Math.max(0, 3 - latest) }, (_, index) => ({
      UUID: `0000-${index}`,
      TrialID: 4,
      StepsCompleted: 10 * (index + 1),
      State: "COMPLETED",
      Resources: { "state/": 0, "state/model.pt": 1_500_000 },
      ReportTime: "2030-01-01T00:00:00Z",
      ValidationMetrics: index === 0 ? { loss: 0.25 } : null,
    })),
  };
}

async function tab(
  change: Partial<Experiment> = {},
  admin = false,
  outputs: object = { outputs: [OUTPUTS_OF_TRIAL], next: null },
) {
  fakeStreams();
  const session = sessionOf();
  const master = fakeMaster({
    "GET /detent/session": { ...session, user: { ...session.user, admin } },
    "GET /detent/checkpoints": { checkpoints: [], next: null },
    [OUTPUTS]: outputs,
    [PREVIEW]: preview,
    [PATCH]: {},
  });
  drawn(
    <SessionGate>
      <Checkpoints experiment={experimentOf({ state: "STATE_COMPLETED", config: CONFIG, ...change })} />
    </SessionGate>,
  );
  await pass();
  return master;
}

const press = async (name: string) => {
  await user.click(screen.getByRole("button", { name }));
  await pass();
};

const type = async (label: string, text: string) => {
  fireEvent.change(screen.getByLabelText(label), { target: { value: text } });
  await pass();
};

const rows = () =>
  within(screen.getByRole("region", { name: "Checkpoints that would be deleted" }))
    .getAllByRole("row")
    .slice(1)
    .map((row) => row.textContent);

describe("the checkpoint policy of an experiment", () => {
  beforeEach(() => stopClock());

  it("begins with the numbers of its configuration and the checkpoints that they would delete", async () => {
    const master = await tab();
    await press("Checkpoint policy…");
    expect(screen.getByLabelText("Best of the experiment")).toHaveValue(2);
    expect(screen.getByLabelText("Best of each trial")).toHaveValue(1);
    expect(screen.getByLabelText("Latest of each trial")).toHaveValue(3);
    expect(screen.getByText("No checkpoint would be deleted.")).toBeVisible();
    expect(String(master.of(PREVIEW)[0]?.query)).toBe("save_experiment_best=2&save_trial_best=1&save_trial_latest=3");
  });

  it("shows the checkpoints that smaller numbers delete, and deletes only after a confirmation that names their size", async () => {
    const master = await tab();
    await press("Checkpoint policy…");
    await type("Latest of each trial", "1");
    expect(rows()).toEqual(["4100.251.50 MB0000-0", "4201.50 MB0000-1"]);
    expect(screen.getByText("2 checkpoints with 3.00 MB")).toBeVisible();
    await press("Delete 2 checkpoints…");
    expect(master.of(PATCH)).toEqual([]);
    const dialog = screen.getByRole("dialog", { name: "Delete 2 checkpoints?" });
    expect(dialog).toHaveTextContent("2 checkpoints of experiment 7 with 3.00 MB are deleted for good.");
    await press("Set the policy and delete");
    expect(master.of(PATCH).map(({ body }) => body)).toEqual([
      { checkpointStorage: { saveExperimentBest: 2, saveTrialBest: 1, saveTrialLatest: 1 } },
    ]);
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(screen.getByText("Set the checkpoint policy of experiment 7")).toBeVisible();
  });

  it("returns to the numbers if the confirmation is canceled", async () => {
    const master = await tab();
    await press("Checkpoint policy…");
    await type("Latest of each trial", "1");
    await press("Delete 2 checkpoints…");
    await press("Cancel");
    expect(screen.getByLabelText("Latest of each trial")).toHaveValue(1);
    expect(master.of(PATCH)).toEqual([]);
  });

  it("of a running experiment is set at once, since nothing is deleted before its end", async () => {
    const master = await tab({ state: "STATE_ACTIVE" });
    await press("Checkpoint policy…");
    await type("Latest of each trial", "2");
    expect(screen.getByText(/applied when the experiment ends/)).toBeVisible();
    expect(rows()).toHaveLength(1);
    await press("Set the policy");
    expect(master.of(PATCH)).toHaveLength(1);
  });

  it.each(["", "-1", "1.5", "2147483648"])("is not set to %j", async (text) => {
    const master = await tab();
    await press("Checkpoint policy…");
    await type("Latest of each trial", text);
    expect(screen.getByRole("alert")).toHaveTextContent("Each number must be a whole number from 0 to 2147483647.");
    await press("Set the policy");
    expect(master.of(PATCH)).toEqual([]);
  });

  it("that the master refuses stays in the form", async () => {
    const master = await tab();
    master.answers[PATCH] = new Refusal(400, "experiment 7 is archived; unarchive it first");
    await press("Checkpoint policy…");
    await press("Set the policy");
    expect(screen.getByText("experiment 7 is archived; unarchive it first")).toBeVisible();
    expect(screen.getByRole("dialog")).toBeVisible();
  });

  it.each([
    [{ username: "kim" }, "Only kim or an admin can change it"],
    [{ archived: true }, "It is archived; unarchive it first"],
  ])("cannot be changed by every user or at every time: %j", async (change, why) => {
    await tab(change);
    expect(screen.getByRole("button", { name: "Checkpoint policy…" })).toHaveAttribute("title", why);
    await press("Checkpoint policy…");
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  it("is changed by an admin", async () => {
    await tab({ username: "kim" }, true);
    await press("Checkpoint policy…");
    expect(screen.getByRole("dialog", { name: "Checkpoint policy of experiment 7" })).toBeVisible();
  });
});

describe("the outputs of an experiment", () => {
  beforeEach(() => stopClock());

  it("are listed with their size, files and a download", async () => {
    await tab({ config: { ...CONFIG, outputs: ["runs", "logs"] } });
    const row = within(screen.getByRole("region", { name: "Outputs" })).getAllByRole("row")[1];
    expect(row).toHaveTextContent("4runs, logs2.00 KB3");
    const link = screen.getByRole("link", { name: "Download the outputs of trial 4" });
    expect(link.getAttribute("href")).toMatch(/\/checkpoints\/0000-9$/);
    expect(link).toHaveAttribute("download");
  });

  it("that no attempt has stored yet are said to come", async () => {
    const master = await tab({ config: { ...CONFIG, outputs: ["runs"] } }, false, { outputs: [], next: null });
    expect(master.of(OUTPUTS)).toHaveLength(1);
    expect(screen.getByRole("region", { name: "Outputs" })).toHaveTextContent("None yet");
  });

  it("are not asked for if its configuration names none", async () => {
    const master = await tab();
    expect(master.of(OUTPUTS)).toEqual([]);
    expect(screen.queryByRole("region", { name: "Outputs" })).toBeNull();
  });
});
