import { fireEvent, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { SessionGate } from "@/app/session";
import type { QueueEntry } from "@/services/cluster";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { CREATED, sessionOf } from "@/testing/samples";
import { Queue } from "./Queue";

const MOVE = "POST /api/v1/job-queues";
const ME = sessionOf().user.id;

/** Returns a waiting trial of a job. `name` is the experiment's name, too. */
function waiting(jobId: string, change: Partial<QueueEntry> = {}): QueueEntry {
  return {
    taskId: `${jobId}.task`,
    kind: "TRIAL",
    agents: [],
    trialId: 1,
    experimentId: 7,
    name: jobId,
    allocationId: `${jobId}.1`,
    jobId,
    pool: "default",
    username: "ana",
    userId: ME,
    slots: 1,
    priority: 42,
    since: CREATED,
    waiting: "needs 1 slot; 0 of 2 free",
    state: "STATE_QUEUED",
    ports: [],
    idleSince: null,
    ...change,
  };
}

async function shown(entries: QueueEntry[]) {
  fakeStreams();
  const session = sessionOf({ payers: { slurm: "lea (Slurm account vision)" } });
  const master = fakeMaster({ [MOVE]: {}, "GET /detent/session": session });
  drawn(
    <SessionGate>
      <Queue entries={entries} />
    </SessionGate>,
  );
  await pass();
  return { master, moves: () => master.of(MOVE).map(({ body }) => (body as { updates: unknown[] }).updates[0]) };
}

const handle = (name: string) => screen.getByRole("button", { name: `Move ${name}` });

describe("the queue", () => {
  beforeEach(() => stopClock());

  it("names who is charged for a job, where somebody is", async () => {
    await shown([waiting("a", { pool: "slurm" }), waiting("b")]);
    expect(screen.getAllByText(/charged to/)).toHaveLength(1);
    expect(screen.getByText("charged to lea (Slurm account vision)")).toBeVisible();
  });

  it("leads to a terminal in a shell of one's own, and says for how long nobody was in it", async () => {
    const shell = { kind: "SHELL", trialId: null, experimentId: null, state: "STATE_RUNNING" } as const;
    const idleSince = new Date(Date.now() - 125_000).toISOString();
    await shown([waiting("mine", { ...shell, idleSince }), waiting("theirs", { ...shell, userId: ME + 1 })]);
    expect(screen.getByRole("link", { name: "mine" })).toHaveAttribute("href", "/cluster/shells/mine.task");
    expect(screen.queryByRole("link", { name: "theirs" })).toBeNull();
    expect(screen.getAllByText(/^idle for/).map((each) => each.textContent)).toEqual(["idle for 2 min 05 s"]);
  });

  it("opens the declared pages of one's own tasks", async () => {
    await shown([waiting("mine", { ports: [8899, 6006] }), waiting("theirs", { ports: [8899], userId: ME + 1 })]);
    const links = screen.getAllByRole("link", { name: /^Open port/ });
    expect(links.map((each) => each.textContent)).toEqual(["Open port 8899", "Open port 6006"]);
    expect(links[0]).toHaveAttribute("href", "/detent/tasks/mine.task/enter?port=8899");
  });

  it("moves a job one place by the arrow keys", async () => {
    const { moves } = await shown([waiting("a"), waiting("b"), waiting("c")]);
    handle("b").focus();
    await user.keyboard("{ArrowUp}");
    await pass();
    await user.keyboard("{ArrowDown}");
    await pass();
    expect(moves()).toEqual([
      { jobId: "b", aheadOf: "a" },
      { jobId: "b", behindOf: "c" },
    ]);
  });

  it("sends nothing at its ends", async () => {
    const { moves } = await shown([waiting("a"), waiting("b")]);
    handle("a").focus();
    await user.keyboard("{ArrowUp}{Enter}");
    await pass();
    expect(moves()).toEqual([]);
  });

  it("moves the trials of a job together", async () => {
    const { moves } = await shown([
      waiting("a"),
      waiting("b", { allocationId: "b.1" }),
      waiting("b", { allocationId: "b.2", name: "b again" }),
      waiting("c"),
    ]);
    handle("c").focus();
    await user.keyboard("{ArrowUp}");
    await pass();
    expect(moves()).toEqual([{ jobId: "c", aheadOf: "b" }]);
  });

  it("moves a job by dragging it, within its pool only", async () => {
    const { moves } = await shown([waiting("a"), waiting("b"), waiting("c"), waiting("d", { pool: "cpu" })]);
    const rows = screen.getAllByRole("row").slice(1);
    fireEvent.dragStart(handle("a"));
    fireEvent.drop(rows[3]!);
    fireEvent.dragEnd(handle("a"));
    fireEvent.dragStart(handle("a"));
    fireEvent.drop(rows[2]!);
    await pass();
    expect(moves()).toEqual([{ jobId: "a", behindOf: "c" }]);
  });

  it("lets nobody move running jobs or those of other users", async () => {
    await shown([waiting("mine"), waiting("runs", { state: "STATE_RUNNING" }), waiting("others", { userId: ME + 1 })]);
    expect(screen.getAllByRole("button", { name: /^Move/ }).map((each) => each.getAttribute("aria-label"))).toEqual([
      "Move mine",
    ]);
  });

  it("names the kind of a task, and where it runs", async () => {
    await shown([
      waiting("job", { trialId: null, experimentId: null, kind: "COMMAND", agents: ["a", "b"], waiting: "" }),
      waiting("digits"),
    ]);
    expect(screen.getByRole("cell", { name: "command" })).toBeVisible();
    expect(screen.getByRole("cell", { name: "a, b" })).toBeVisible();
    expect(screen.getByRole("link", { name: "trial 1" })).toHaveAttribute("href", "/experiments/7/trials/1");
  });

  it.each([
    ["a trial", {}, "Kill trial 1 of mine…", "POST /api/v1/trials/1/kill"],
    ["a command", { trialId: null, experimentId: null }, "Kill mine…", "POST /api/v1/tasks/mine.task/kill"],
  ])("kills %s after a question", async (_, change, name, line) => {
    const { master } = await shown([waiting("mine", change)]);
    master.answers[line] = {};
    await user.click(screen.getByRole("button", { name }));
    await user.click(screen.getByRole("button", { name: "Cancel" }));
    await user.click(screen.getByRole("button", { name }));
    expect(master.of(line)).toEqual([]);
    await user.click(screen.getByRole("button", { name: "Kill" }));
    await pass();
    expect(master.of(line)).toHaveLength(1);
  });

  it("lets nobody kill tasks of other users", async () => {
    await shown([waiting("others", { userId: ME + 1 })]);
    expect(screen.queryByRole("button", { name: /^Kill/ })).toBeNull();
  });
});
