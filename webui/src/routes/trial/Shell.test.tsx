import { act, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sessionEnded } from "@/api/sessionEnded";
import { drawn, user } from "@/testing/drawn";
import { fakeMaster, Refusal } from "@/testing/fakeMaster";
import { fakeWebSockets } from "@/testing/fakeWebSocket";
import { trialOf } from "@/testing/samples";
import Shell from "./Shell";

const STREAMS = "POST /detent/tasks/t1/streams";
const ANSWER = { streamId: "s", key: "k", sessionId: "one", agentId: "a" };
const container = (rank: number, slots: number[], agentId: string) => ({ rank, slots, agentId });

async function page(answer: object = ANSWER, containers = [container(0, [0], "a")]) {
  const sockets = fakeWebSockets();
  const attempts = { attempts: [{ runId: 1, containers }] };
  const master = fakeMaster({ [STREAMS]: answer, "GET /detent/trials/9/attempts": attempts });
  drawn(<Shell trial={trialOf(9, { taskId: "t1", state: "STATE_RUNNING" })} />);
  await screen.findByRole("button", { name: "Open a shell" });
  const open = async () => {
    await user.click(screen.getByRole("button", { name: "Open a shell" }));
    await vi.waitFor(() => expect(master.of(STREAMS)).toHaveLength(1));
  };
  return { sockets, master, open };
}

const says = (text: string) => vi.waitFor(() => expect(screen.getByText(text)).toBeVisible());

describe("a shell of a trial", () => {
  beforeEach(() => {
    vi.stubGlobal(
      "ResizeObserver",
      class {
        observe() {}
        disconnect() {}
      },
    );
  });
  afterEach(() => {
    act(() => sessionEnded.tell());
    Reflect.deleteProperty(document, "createElement");
  });

  it("opens in the container of the chosen rank", async () => {
    const { master, open } = await page(ANSWER, [container(1, [0, 1], "b"), container(0, [0, 1, 2], "a")]);
    const choice = await screen.findByRole("combobox", { name: "Container" });
    expect([...choice.children].map((each) => each.textContent)).toEqual(["ranks 0 to 2 on a", "ranks 3 to 4 on b"]);
    await user.selectOptions(choice, "ranks 3 to 4 on b");
    await open();
    expect(master.of(STREAMS)[0]!.body).toMatchObject({ rank: 3, argv: [] });
    expect(screen.queryByRole("combobox")).toBeNull();
  });

  it("offers no choice where there is one container", async () => {
    await page();
    expect(screen.queryByRole("combobox")).toBeNull();
  });

  it.each([
    [{ code: 0 }, "The shell has ended."],
    [{ code: 2 }, "The shell has ended with exit code 2."],
    [{ signal: 9 }, "Signal 9 ended the shell."],
    [{ error: "the task has ended" }, "The shell has ended: the task has ended."],
  ])("says why it ended with %o, and opens again", async (value, text) => {
    const { sockets, master, open } = await page();
    await open();
    await says("Connected");
    sockets[0]!.taken(0);
    sockets[0]!.status(value);
    await says(text);
    // The agent waits for this before it closes the stream.
    expect(sockets[0]!.sent.at(-1)).toBeGreaterThan(0);
    await user.click(screen.getByRole("button", { name: "Open again" }));
    await says("Connected");
    expect(master.of(STREAMS)[1]!.body).toMatchObject({ sessionId: "" });
  });

  it("shows the refusal of the master in a sentence", async () => {
    const { open } = await page(new Refusal(403, "task t1 belongs to ana; only ana or an admin may enter it"));
    await open();
    await says("Task t1 belongs to ana; only ana or an admin may enter it.");
  });

  it("says that it connects again after a cut connection", async () => {
    const { sockets, open } = await page();
    await open();
    await says("Connected");
    sockets[0]!.cut();
    await says("The connection was lost; connecting again…");
    await says("Connected");
  });

  it("ends when the user signs out", async () => {
    const { sockets, open } = await page();
    await open();
    await says("Connected");
    act(() => sessionEnded.tell());
    expect(sockets[0]!.closedWith).toBe(1000);
    expect(screen.getByRole("button", { name: "Open a shell" })).toBeVisible();
  });
});
