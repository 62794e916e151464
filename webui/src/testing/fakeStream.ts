import { vi } from "vitest";

/** The streams that the page opened, newest last. Tests send the messages of the master. */
export interface FakeStreams {
  opened: FakeStream[];
  newest: () => FakeStream;
}

export class FakeStream {
  closed = false;
  private readonly listeners = new Map<string, (event: { data: string; lastEventId: string }) => void>();

  constructor(readonly url: string) {}

  addEventListener(type: string, listener: (event: { data: string; lastEventId: string }) => void): void {
    this.listeners.set(type, listener);
  }

  close(): void {
    this.closed = true;
  }

  say(type: string, data: object = {}, lastEventId = ""): void {
    if (!this.closed) this.listeners.get(type)?.({ data: JSON.stringify(data), lastEventId });
  }

  hello(resumed = false): void {
    this.say("hello", { build: "", version: "1", now: new Date().toISOString(), resumed });
  }

  change(...changes: { kind: string; id: string }[]): void {
    this.say("change", { changes });
  }
}

export function fakeStreams(): FakeStreams {
  const opened: FakeStream[] = [];
  vi.stubGlobal(
    "EventSource",
    class extends FakeStream {
      constructor(url: string) {
        super(url);
        opened.push(this);
      }
    },
  );
  return { opened, newest: () => opened.at(-1)! };
}
