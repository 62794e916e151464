import { screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { SessionGate } from "@/app/session";
import type { OverviewAgent } from "@/services/cluster";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { CREATED, sessionOf } from "@/testing/samples";
import { AgentCard } from "./AgentCard";

const DISABLE = "POST /api/v1/agents/gpu-1/disable";
const DISABLE_SLOT = "POST /api/v1/agents/gpu-1/slots/0/disable";
const holder = {
  allocationId: "7.3.1",
  trialId: 3,
  experimentId: 7,
  taskId: "7.3",
  kind: "TRIAL" as const,
  name: "digits",
  rank: 0,
  since: CREATED,
};

const AGENT: OverviewAgent = {
  id: "gpu-1",
  pool: "default",
  hostname: "gpu-1",
  version: "1.0",
  connected: true,
  enabled: true,
  draining: false,
  warning: "",
  origin: "",
  leaving: false,
  leavesAt: null,
  leavesWhy: "",
  slots: [
    { id: 0, type: "cuda", brand: "", enabled: true, draining: false, status: "free", reason: "", held: holder },
    {
      id: 1,
      type: "cuda",
      brand: "",
      enabled: true,
      draining: false,
      status: "free",
      reason: "",
      held: { ...holder, rank: 1 },
    },
  ],
};

async function card(agent: Partial<OverviewAgent> = {}) {
  fakeStreams();
  const session = sessionOf();
  const admin = { ...session, user: { ...session.user, admin: true } };
  const master = fakeMaster({ [DISABLE]: {}, [DISABLE_SLOT]: {}, "GET /detent/session": admin });
  drawn(
    <SessionGate>
      <AgentCard agent={{ ...AGENT, ...agent }} />
    </SessionGate>,
  );
  await pass();
  return master;
}

const press = async (name: string) => {
  await user.click(screen.getByRole("button", { name }));
  await pass();
};

const flip = async (name: string) => {
  await user.click(screen.getByRole("switch", { name, checked: true }));
  await pass();
};

describe("a machine", () => {
  beforeEach(() => stopClock());

  it("reports that its clock is wrong", async () => {
    const warning = "the clock of agent gpu-1 is 3 h 0 min ahead of the master's";
    await card({ warning });
    expect(screen.getByText(warning)).toBeVisible();
  });

  it("shows when and why it leaves, and that nothing new is placed on it", async () => {
    const leavesAt = new Date(Date.parse(CREATED) + 3_600_000).toISOString();
    await card({ origin: "Slurm job 550", leaving: true, leavesAt, leavesWhy: "time limit of Slurm job 550" });
    expect(screen.getByText("leaving")).toBeVisible();
    expect(screen.getByText(/, Slurm job 550$/)).toBeVisible();
    expect(screen.getByText(/^Leaves in .*: time limit of Slurm job 550$/)).toBeVisible();
  });

  it("shows which slots cannot be used, and why", async () => {
    const reason = "process 4711 of alice uses it, outside the cluster";
    const free = { id: 0, type: "cuda", brand: "", enabled: true, draining: false, held: null };
    await card({
      slots: [
        { ...free, status: "occupied", reason },
        { ...free, id: 1, status: "unhealthy", reason: "the driver lost it", held: holder },
        { ...free, id: 2, status: "occupied", reason, enabled: false },
      ],
    });
    const slots = [...document.querySelectorAll("[data-slot]")];
    expect(slots.map((slot) => slot.querySelector("[data-testid=state]")?.textContent.trim())).toEqual([
      "used by others",
      "unhealthy",
      "disabled",
    ]);
    expect(screen.getAllByText(reason)).toHaveLength(2);
    expect(screen.getByText("the driver lost it")).toBeVisible();
  });

  it("is drained at the first click", async () => {
    const master = await card();
    await press("Drain");
    expect(master.of(DISABLE).map(({ body }) => body)).toEqual([{ drain: true }]);
  });

  it("is disabled only after a dialog that names each trial once", async () => {
    const master = await card();
    await press("Disable…");
    expect(master.of(DISABLE)).toEqual([]);
    const dialog = within(screen.getByRole("dialog", { name: "Disable agent gpu-1?" }));
    expect(dialog.getAllByRole("listitem").map((each) => each.textContent)).toEqual([
      "Trial 3 of experiment 7, digits",
    ]);
    expect(dialog.getByText(/without a checkpoint/)).toBeVisible();
    await press("Disable");
    expect(master.of(DISABLE).map(({ body }) => body)).toEqual([{ drain: false }]);
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  it("is not changed by Cancel, and drained by the alternative", async () => {
    const master = await card();
    await press("Disable…");
    await press("Cancel");
    expect(master.of(DISABLE)).toEqual([]);
    await press("Disable…");
    await press("Drain instead");
    expect(master.of(DISABLE).map(({ body }) => body)).toEqual([{ drain: true }]);
  });

  it("asks for a confirmation before a slot in use is disabled", async () => {
    const master = await card();
    await flip("Slot 0 of gpu-1, enabled");
    expect(master.of(DISABLE_SLOT)).toEqual([]);
    await press("Disable");
    expect(master.of(DISABLE_SLOT).map(({ body }) => body)).toEqual([{ drain: false }]);
  });

  it("shows the use of each slot, and how many are in use", async () => {
    const slots = [
      AGENT.slots[0]!,
      { ...AGENT.slots[1]!, held: null },
      { ...AGENT.slots[1]!, id: 2, held: null, enabled: false },
      { ...AGENT.slots[1]!, id: 3, enabled: false },
    ];
    await card({ slots });
    const states = [...document.querySelectorAll("[data-slot] [data-testid=state]")].map((each) =>
      each.textContent.trim(),
    );
    expect(states).toEqual(["in use", "free", "disabled", "draining"]);
    expect(screen.getByRole("img", { name: "2 of 4 slots in use" }).querySelectorAll(".filled")).toHaveLength(2);
    expect(screen.getAllByRole("switch").map((each) => each.getAttribute("aria-checked"))).toEqual([
      "true",
      "true",
      "false",
      "false",
    ]);
  });

  it("shows a slot that a command holds, and names the command before it is killed", async () => {
    const command = {
      ...holder,
      allocationId: "c.1",
      taskId: "c",
      kind: "TRIAL" as const,
      trialId: null,
      experimentId: null,
      name: "Command (owl)",
    };
    await card({ slots: [{ ...AGENT.slots[0]!, held: command }] });
    expect(screen.getByText("Command (owl)")).toBeVisible();
    expect(screen.queryByRole("link")).toBeNull();
    expect(screen.queryByText(/trial/)).toBeNull();
    await press("Disable…");
    const dialog = within(screen.getByRole("dialog"));
    expect(within(dialog.getByRole("list", { name: "Other tasks" })).getByText("Command (owl)")).toBeVisible();
    expect(dialog.getByText("No trial uses a slot here.")).toBeVisible();
  });

  it("disables a free slot at the first click", async () => {
    const master = await card({ slots: [{ ...AGENT.slots[0]!, held: null }] });
    await flip("Slot 0 of gpu-1, enabled");
    expect(master.of(DISABLE_SLOT)).toHaveLength(1);
  });
});
