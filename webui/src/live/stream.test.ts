import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveStream, type Source } from "./stream";

class Fake implements Source {
  listeners = new Map<string, (event: MessageEvent<string>) => void>();
  closed = false;

  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void {
    this.listeners.set(type, listener);
  }

  close(): void {
    this.closed = true;
  }

  say(type: string, data: unknown, lastEventId = ""): void {
    this.listeners.get(type)?.({
      data: typeof data === "string" ? data : JSON.stringify(data),
      lastEventId,
    } as MessageEvent<string>);
  }
}

function made() {
  const opened: { source: Fake; from: string }[] = [];
  const onChanges = vi.fn();
  const onGap = vi.fn();
  const onSignedOut = vi.fn();
  const stream = new LiveStream(
    (from) => {
      const source = new Fake();
      opened.push({ source, from });
      return source;
    },
    { onChanges, onGap, onOpen: () => undefined, onSignedOut, onLost: () => undefined },
  );
  stream.start();
  return { stream, opened, onChanges, onGap, onSignedOut, newest: () => opened.at(-1)!.source };
}

const hello = { build: "b", version: "1", now: "2026-11-21T12:00:00Z", resumed: false };

describe("the stream", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("delivers changes", () => {
    const { newest, onChanges, stream } = made();
    newest().say("hello", hello);
    newest().say("change", { changes: [{ kind: "experiment", id: "7" }] }, "1-5");
    expect(stream.snapshot().connection).toBe("live");
    expect(onChanges).toHaveBeenCalledWith([{ kind: "experiment", id: "7" }]);
  });

  it("reports its loss, continues from the last event, and triggers no refetch if it missed nothing", () => {
    const { newest, opened, onGap, stream } = made();
    newest().say("hello", hello, "1-0");
    onGap.mockClear();
    newest().say("change", { changes: [] }, "1-5");
    newest().say("error", "");
    expect(stream.snapshot().connection).toBe("lost");
    vi.advanceTimersByTime(500);
    expect(opened.map(({ from }) => from)).toEqual(["", "1-5"]);
    expect(opened[0]!.source.closed).toBe(true);
    newest().say("hello", { ...hello, resumed: true });
    expect(stream.snapshot().connection).toBe("live");
    expect(onGap).not.toHaveBeenCalled();
  });

  it("marks everything as stale that was loaded before it began, and after a gap", () => {
    const { newest, onGap } = made();
    newest().say("hello", hello);
    expect(onGap).toHaveBeenCalledTimes(1);
    newest().say("error", "");
    vi.advanceTimersByTime(500);
    newest().say("hello", hello);
    expect(onGap).toHaveBeenCalledTimes(2);
  });

  it("waits longer before each attempt, at most ten seconds", () => {
    const { newest, opened } = made();
    for (let round = 0; round < 12; round += 1) {
      newest().say("error", "");
      vi.advanceTimersByTime(10_000);
    }
    expect(opened).toHaveLength(13);
  });

  it("ends at sign-out and does not reconnect by itself", () => {
    const { newest, opened, stream, onSignedOut } = made();
    newest().say("hello", hello);
    newest().say("bye", { reason: "signed-out" });
    vi.advanceTimersByTime(60_000);
    expect(onSignedOut).toHaveBeenCalledTimes(1);
    expect(stream.snapshot().connection).toBe("signed-out");
    expect(opened).toHaveLength(1);
  });

  it("ignores messages that it does not understand", () => {
    const { newest, onChanges } = made();
    newest().say("hello", "not json");
    newest().say("change", "[]");
    newest().say("change", { changes: "all" });
    expect(onChanges).not.toHaveBeenCalled();
  });
});
