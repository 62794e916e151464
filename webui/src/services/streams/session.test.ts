import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Asked, fakeMaster, Refusal } from "@/testing/fakeMaster";
import { FakeWebSocket, fakeWebSockets } from "@/testing/fakeWebSocket";
import { Kind, type StreamRecord } from "./records";
import { TaskSession } from "./session";

const STREAMS = "POST /detent/tasks/t1/streams";
const ANSWER = { streamId: "s", key: "k", sessionId: "one", agentId: "a" };

function begin(answer: object = ANSWER) {
  const sockets = fakeWebSockets();
  const master = fakeMaster({ [STREAMS]: answer });
  const states: string[] = [];
  const session = new TaskSession({ taskId: "t1", rank: 2, rows: 24, columns: 80 }, (state) => states.push(state));
  const running = session.run();
  running.catch(() => undefined);
  const bodies = () => master.of(STREAMS).map(({ body }: Asked) => body as Record<string, unknown>);
  return { sockets, master, states, session, running, bodies };
}

const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
const input: StreamRecord = { kind: Kind.INPUT, content: Uint8Array.of(108, 115) };

describe("a session in a task", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("asks for a shell of this rank and size, and shows the key to the stream alone", async () => {
    const { sockets, bodies, states } = begin();
    await settle();
    const terminal = { rows: 24, columns: 80, type: "xterm-256color" };
    expect(bodies()).toEqual([{ argv: [], port: 0, rank: 2, terminal, sessionId: "" }]);
    expect(sockets[0]!.url.href).toMatch(/^ws:.*\/detent\/streams\/s$/);
    expect(sockets[0]!.protocols).toEqual(["detent.stream.v1", "k"]);
    expect(states).toEqual(["connected"]);
  });

  it("continues the same session after a cut connection, without a loss", async () => {
    const { sockets, bodies, states, session } = begin();
    await settle();
    sockets[0]!.taken(0);
    void session.stream.send(input);
    await settle();
    sockets[0]!.cut();
    await settle(100);
    expect(bodies()[1]).toMatchObject({ sessionId: "one" });
    expect(states).toEqual(["connected", "reconnecting", "connected"]);
    sockets[1]!.taken(0);
    expect(sockets[1]!.input).toBe("ls");
  });

  it("connects again at once after a long connection, since a hidden page has slow timers", async () => {
    const { sockets, bodies } = begin();
    await settle();
    sockets[0]!.taken(0);
    vi.setSystemTime(Date.now() + 15_000);
    sockets[0]!.cut();
    await settle();
    expect(bodies()).toHaveLength(2);
  });

  it("waits for a master that restarts, and for its agents", async () => {
    const { sockets, master, states } = begin();
    await settle();
    sockets[0]!.cut(1012);
    master.answers[STREAMS] = new Refusal(503, "restarting");
    await settle(1000);
    master.answers[STREAMS] = new Refusal(409, "agent a is not connected");
    await settle(5000);
    master.answers[STREAMS] = ANSWER;
    await settle(2000);
    expect(states.at(-1)).toBe("connected");
    expect(sockets).toHaveLength(2);
  });

  it("gives up after a minute", async () => {
    const { sockets, running } = begin();
    await settle();
    FakeWebSocket.accepts = false;
    sockets[0]!.cut();
    await settle(65_000);
    await expect(running).rejects.toThrow("could not be opened");
  });

  it.each([
    ["a refusal", new Refusal(409, "task t1 waits for slots"), "waits for slots"],
    ["a task of somebody else", new Refusal(403, "only ana or an admin may enter it"), "may enter"],
  ])("ends at once with %s to the first request", async (_, refusal, words) => {
    const { running } = begin(refusal);
    await settle();
    await expect(running).rejects.toThrow(words);
  });

  it("ends with the reason of the agent", async () => {
    const { sockets, running } = begin();
    await settle();
    sockets[0]!.cut(4001, "too many sessions");
    await expect(running).rejects.toThrow("too many sessions");
  });

  it("ends when the agent closes the stream, and tries no more", async () => {
    const { sockets, running, bodies } = begin();
    await settle();
    sockets[0]!.cut(1000);
    await running;
    await settle(5000);
    expect(bodies()).toHaveLength(1);
  });

  it("tells the agent when it is closed, also while it is being opened", async () => {
    const open = begin();
    await settle();
    open.session.close();
    await open.running;
    expect(open.sockets[0]!.closedWith).toBe(1000);
    const early = begin();
    early.session.close();
    await settle();
    await early.running;
    expect(early.sockets[0]!.closedWith).toBe(1000);
  });
});
