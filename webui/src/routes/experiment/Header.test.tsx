import { useQuery } from "@tanstack/react-query";
import { screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { heardTime } from "@/live/serverClock";
import { type ExperimentStatus, statusQuery } from "@/services/experiments";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster, held, Refusal } from "@/testing/fakeMaster";
import { CREATED, experimentOf, rowOf, statusOf } from "@/testing/samples";
import { rememberList } from "../home/lastList";
import { Header } from "./Header";

const STATUS = "GET /detent/experiments/7/status";
const PAUSE = "POST /api/v1/experiments/7/pause";

function Page() {
  const { data } = useQuery(statusQuery(7));
  return data ? <Header experiment={experimentOf()} status={data} /> : null;
}

async function page(status: Partial<ExperimentStatus>) {
  const master = fakeMaster({ [STATUS]: statusOf(status), [PAUSE]: {} });
  const shown = drawn(<Page />, "/experiments/7");
  await pass();
  return { master, ...shown };
}

const steering = () => within(screen.getByRole("group", { name: "Experiment actions" }));
const titles = () =>
  steering()
    .getAllByRole("button")
    .map((button) => button.textContent.trim());
const state = () =>
  screen
    .getAllByRole("status")
    .map((each) => each.textContent)
    .join();

describe("the link back to the list", () => {
  beforeEach(() => stopClock());

  it("keeps the filter and the order of the list", async () => {
    rememberList("q=state+%3D+running&sort=name%3Dasc");
    const { address } = await page({});
    const back = screen.getByRole("link", { name: "Experiments" });
    expect(back).toHaveAttribute("href", "/?q=state+%3D+running&sort=name%3Dasc");
    await user.keyboard("{Escape}");
    expect(address()).toBe("/?q=state+%3D+running&sort=name%3Dasc");
    sessionStorage.clear();
  });
});

describe("the buttons", () => {
  beforeEach(() => stopClock());
  const none = Object.fromEntries(Object.keys(statusOf().can).map((verb) => [verb, false])) as ExperimentStatus["can"];

  it("are exactly those of the available actions", async () => {
    const { unmount } = await page({});
    expect(titles()).toEqual(["Pause", "Stop", "Kill", "Fork", "More"]);
    unmount();
    await page({ state: "STATE_COMPLETED", can: { ...none, fork: true, archive: true, continue: true } });
    expect(titles()).toEqual(["Continue", "Fork", "More"]);
    await user.click(screen.getByRole("button", { name: "More for this experiment" }));
    expect(screen.getAllByRole("menuitem").map((item) => item.textContent)).toEqual(["Archive", "Compare with others"]);
    expect(document.querySelectorAll("[aria-disabled=true]")).toHaveLength(0);
  });

  it("of another user's experiment are replaced by one reason", async () => {
    const reason = "only bob (the owner) or an admin may change it";
    const why = Object.fromEntries(Object.keys(none).map((verb) => [verb, reason]));
    await page({ can: { ...none, fork: true }, why: { ...why, fork: null } as ExperimentStatus["why"] });
    expect(titles()).toEqual(["Fork", "More"]);
    expect(screen.getByText("Only bob (the owner) or an admin may change it")).toBeVisible();
  });

  it("send nothing by their key if the action is not available", async () => {
    const { master } = await page({});
    const before = master.asked.length;
    await user.keyboard("a");
    await pass();
    expect(master.asked).toHaveLength(before);
  });

  it("keep the focus among them if the focused one disappears, and a double click presses only one", async () => {
    const { master } = await page({});
    const paused = { ...statusOf().can, pause: false, activate: true };
    master.answers[STATUS] = statusOf({ state: "STATE_PAUSED", can: paused });
    await user.dblClick(steering().getByRole("button", { name: "Pause" }));
    await pass();
    expect(titles()).toEqual(["Activate", "Stop", "Kill", "Fork", "More"]);
    expect(steering().getByRole("button", { name: "Activate" })).toHaveFocus();
    expect(master.of(PAUSE)).toHaveLength(1);
    expect(master.asked.filter(({ line }) => line.endsWith("/activate"))).toEqual([]);
  });
});

describe("Continue", () => {
  beforeEach(() => stopClock());
  const CONTINUE = "POST /api/v1/experiments/continue";
  const ended = { ...statusOf().can, continue: true };

  it("is available after the end, and is sent with the experiment's id", async () => {
    const { master } = await page({ state: "STATE_ERROR", can: ended });
    Object.assign(master.answers, { [CONTINUE]: { experiment: experimentOf(), warnings: [] } });
    await user.click(steering().getByRole("button", { name: "Continue" }));
    await pass();
    expect(master.of(CONTINUE).map(({ body }) => body)).toEqual([{ id: 7 }]);
    expect(screen.getByText("Continuing experiment 7")).toBeInTheDocument();
  });

  it("is not available before the end, nor for an archived one", async () => {
    const { unmount } = await page({});
    expect(steering().queryByRole("button", { name: "Continue" })).toBeNull();
    unmount();
    const why = { ...statusOf().why, continue: "it is archived" };
    await page({ state: "STATE_COMPLETED", archived: true, why });
    expect(steering().queryByRole("button", { name: "Continue" })).toBeNull();
  });
});

describe("Kill", () => {
  beforeEach(() => stopClock());
  const KILL = "POST /api/v1/experiments/7/kill";
  const CANCEL = "POST /api/v1/experiments/7/cancel";
  const trial = (trialId: number, state: ExperimentStatus["state"], steps: number) => ({
    trialId,
    state,
    text: "",
    since: CREATED,
    waiting: null,
    restarts: 0,
    attempt: 1,
    maxAttempts: 6,
    failure: null,
    note: null,
    buildTaskId: null,
    progress: 0.5,
    steps,
  });
  const mark = (trialId: number, steps: number, time: string) => ({
    trialId,
    time,
    kind: "checkpoint",
    steps,
    text: "",
  });

  const segment = (trialId: number) => ({ trialId, state: "STATE_RUNNING", from: CREATED, to: null, text: "" });

  async function asked(more: ReturnType<typeof trial>[] = []) {
    const { master } = await page({
      now: "2026-11-21T12:10:00Z",
      trials: [trial(3, "STATE_RUNNING", 523), trial(4, "STATE_RUNNING", 57), trial(5, "STATE_QUEUED", 90), ...more],
    });
    Object.assign(master.answers, {
      [KILL]: {},
      [CANCEL]: {},
      "GET /detent/experiments/7/timeline": {
        now: CREATED,
        segments: [segment(3), segment(4), segment(5)],
        marks: [mark(3, 300, "2026-11-21T11:50:00Z"), mark(3, 400, "2026-11-21T11:58:00Z"), mark(5, 80, CREATED)],
      },
    });
    await user.click(steering().getByRole("button", { name: "Kill" }));
    await pass();
    return master;
  }

  it("requires a confirmation that names the loss", async () => {
    const master = await asked();
    expect(master.of(KILL)).toEqual([]);
    const dialog = within(screen.getByRole("dialog", { name: "Kill experiment 7?" }));
    expect(dialog.getAllByRole("listitem").map((each) => each.textContent)).toEqual([
      "Trial 3: 123 steps since the checkpoint at step 400, 12 min 00 s ago",
      "Trial 4: all 57 steps, as it has no checkpoint yet",
    ]);
    expect(
      dialog.getByText("Kill ends it at once, without a checkpoint. Stop saves a checkpoint first, then ends it."),
    ).toBeVisible();
    await user.click(dialog.getByRole("button", { name: "Kill" }));
    await pass();
    expect(master.of(KILL)).toHaveLength(1);
  });

  it("counts the trials of a large search whose checkpoints the timeline does not have", async () => {
    await asked([trial(6, "STATE_RUNNING", 90)]);
    const lost = within(screen.getByRole("list", { name: "Lost work" })).getAllByRole("listitem");
    expect(lost.map((each) => each.textContent)).toEqual([
      expect.stringMatching(/^Trial 3: 123 steps/),
      expect.stringMatching(/^Trial 4: all 57 steps/),
      "that of 1 more trial",
    ]);
  });

  it("offers to stop instead", async () => {
    const master = await asked();
    await user.click(screen.getByRole("button", { name: "Stop instead" }));
    await pass();
    expect([master.of(KILL).length, master.of(CANCEL).length]).toEqual([0, 1]);
  });
});

describe("Delete", () => {
  it("asks for the same phrase as the list, and names the experiment", async () => {
    stopClock();
    const none = statusOf();
    const { master, address } = await page({ state: "STATE_COMPLETED", can: { ...none.can, delete: true } });
    const DELETE = "DELETE /api/v1/experiments/7";
    Object.assign(master.answers, {
      [DELETE]: {},
      "POST /detent/experiments/search": {
        total: 1,
        offset: 0,
        experiments: [rowOf(7, { name: "digits" })],
        unknownColumns: [],
      },
    });
    await user.click(screen.getByRole("button", { name: "More for this experiment" }));
    await user.click(screen.getByRole("menuitem", { name: /Delete/ }));
    await pass();
    const dialog = within(screen.getByRole("dialog", { name: "Delete 1 experiment?" }));
    expect(dialog.getAllByRole("listitem").map((each) => each.textContent)).toEqual(["7 digits"]);
    await user.type(dialog.getByRole("textbox", { name: /Type/ }), "delete 1 experiment{Enter}");
    await pass();
    expect(master.of(DELETE)).toHaveLength(1);
    expect(address()).toBe("/");
  });

  it("that is refused stays on the page with the reason", async () => {
    stopClock();
    const none = statusOf();
    const { master, address } = await page({ state: "STATE_COMPLETED", can: { ...none.can, delete: true } });
    master.answers["DELETE /api/v1/experiments/7"] = new Refusal(403, "only its owner deletes it");
    await user.click(screen.getByRole("button", { name: "More for this experiment" }));
    await user.click(screen.getByRole("menuitem", { name: /Delete/ }));
    await pass();
    await user.type(screen.getByRole("textbox", { name: /Type/ }), "delete 1 experiment{Enter}");
    await pass();
    expect(screen.getByText("only its owner deletes it")).toBeVisible();
    expect(address()).toBe("/experiments/7");
  });
});

describe("the state", () => {
  beforeEach(() => stopClock());

  it("after a verb is the one of the next answer of the master, without a guess before", async () => {
    const { master } = await page({});
    const answer = held<ExperimentStatus>();
    master.answers[STATUS] = () => answer.promise;
    await user.click(steering().getByRole("button", { name: "Pause" }));
    await pass();
    expect(master.of(PAUSE)).toHaveLength(1);
    expect(state()).toContain("running");
    // Another event may have occurred at the master meanwhile.
    answer.give(statusOf({ state: "STATE_COMPLETED", text: "completed" }));
    await pass();
    expect(state()).toContain("completed");
  });

  it("stays if the verb is refused, and the refusal is shown", async () => {
    const { master } = await page({});
    master.answers[PAUSE] = new Refusal(409, "experiment 7 has ended");
    await user.click(steering().getByRole("button", { name: "Pause" }));
    await pass();
    expect(screen.getByText("experiment 7 has ended")).toBeVisible();
    expect(state()).toContain("running");
  });

  it("counts durations by the master's clock from the first moment, however wrong this machine's is", async () => {
    stopClock("2026-11-21T13:00:00Z");
    heardTime(Date.parse(CREATED));
    await page({ state: "STATE_PAUSING", text: "pausing: waiting for checkpoint", now: "2026-11-21T12:00:12Z" });
    expect(state()).toContain("waiting for checkpoint, 12 s");
    await pass(3_000);
    expect(state()).toContain("15 s");
  });
});

it("the state is shown once, with its reason", async () => {
  stopClock();
  const { unmount } = drawn(
    <Header
      experiment={experimentOf()}
      status={statusOf({ state: "STATE_ERROR", text: "failed: trial 4: out of memory", since: CREATED })}
    />,
  );
  await pass();
  expect(state()).toMatch(/^ failedtrial 4: out of memory, 0 s/);
  unmount();
  drawn(
    <Header
      experiment={experimentOf()}
      status={statusOf({ state: "STATE_STOPPING_CANCELED", text: "canceling", since: CREATED })}
    />,
  );
  await pass();
  expect(state()).toMatch(/^ cancelingfor 0 s/);
});

describe("a fork", () => {
  it("is compared with its parent from the menu; an experiment without a parent is not", async () => {
    fakeMaster({});
    const { address, unmount } = drawn(<Header experiment={experimentOf({ forkedFrom: 3 })} status={statusOf()} />);
    await user.click(screen.getByRole("button", { name: "More for this experiment" }));
    await user.click(await screen.findByRole("menuitem", { name: "Compare with parent" }));
    expect(address()).toBe("/compare?experiments=3,7");
    unmount();
    drawn(<Header experiment={experimentOf()} status={statusOf()} />);
    await user.click(screen.getByRole("button", { name: "More for this experiment" }));
    expect(await screen.findByRole("menuitem", { name: "Compare with others" })).toBeVisible();
    expect(screen.queryByRole("menuitem", { name: "Compare with parent" })).toBeNull();
  });
});
