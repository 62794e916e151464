import { describe, expect, it } from "vitest";
import { SharedStream, type StreamMessage } from "./sharedStream";
import type { Source } from "./stream";

class Fake implements Source {
  listeners = new Map<string, (event: MessageEvent<string>) => void>();
  closed = false;

  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void {
    this.listeners.set(type, listener);
  }

  close(): void {
    this.closed = true;
  }

  hello(id: string, resumed: boolean): void {
    this.say("hello", JSON.stringify({ build: "b", version: "1", now: "2026-11-21T12:00:00Z", resumed }), id);
  }

  change(id: string): void {
    this.say("change", `{"changes":[{"kind":"experiment","id":"${id}"}]}`, id);
  }

  say(type: string, data: string, lastEventId: string): void {
    this.listeners.get(type)?.({ data, lastEventId } as MessageEvent<string>);
  }
}

function made() {
  const opened: { source: Fake; after: string }[] = [];
  let now = 0;
  const shared = new SharedStream(
    (_, after) => {
      const source = new Fake();
      opened.push({ source, after });
      return source;
    },
    () => now,
  );
  const join = (after: string, renew = false) => {
    const received: StreamMessage[] = [];
    const page = (each: StreamMessage) => received.push(each);
    shared.start(page, "/detent/stream", after, renew);
    return {
      received,
      page,
      ids: () => received.filter(({ type }) => type === "change").map(({ lastEventId }) => lastEventId),
      hello: () =>
        JSON.parse(received.findLast(({ type }) => type === "hello")?.data ?? "{}") as {
          resumed?: boolean;
          now?: string;
        },
    };
  };
  return { shared, opened, join, newest: () => opened.at(-1)!.source, pass: (ms: number) => (now += ms) };
}

describe("one stream for all pages", () => {
  it("opens one connection, and sends every event to every page", () => {
    const { opened, join, newest } = made();
    const first = join("9-3");
    const second = join("9-3");
    newest().hello("9-3", true);
    newest().change("9-4");
    expect(opened.map(({ after }) => after)).toEqual(["9-3"]);
    for (const page of [first, second]) {
      expect(page.hello().resumed).toBe(true);
      expect(page.ids()).toEqual(["9-4"]);
    }
  });

  it("sends a page that joins later the events that it missed, with the present time", () => {
    const { join, newest, pass } = made();
    join("9-3");
    newest().hello("9-3", true);
    for (const id of ["9-4", "9-5", "9-6"]) newest().change(id);
    pass(60_000);
    const late = join("9-4");
    expect(late.hello()).toMatchObject({ resumed: true, now: "2026-11-21T12:01:00.000Z" });
    expect(late.ids()).toEqual(["9-5", "9-6"]);
    expect(join("9-9").ids()).toEqual([]);
  });

  it("never reports that nothing was missed if that is not known", () => {
    const { join, newest } = made();
    join("9-3");
    newest().hello("9-3", true);
    for (let number = 4; number < 1000; number += 1) newest().change(`9-${number}`);
    for (const after of ["9-2", "9-3", "9-400", "8-999", "", "nonsense"])
      expect(join(after).hello().resumed, after).toBe(false);
    const kept = join("9-600");
    expect(kept.hello().resumed).toBe(true);
    expect(kept.ids()).toHaveLength(399);
  });

  it("reports a loss, continues when a page requests it, and keeps no event from before a gap", () => {
    const { opened, join, newest } = made();
    const page = join("9-3");
    newest().hello("9-3", true);
    newest().change("9-4");
    newest().say("error", "", "");
    expect(page.received.at(-1)?.type).toBe("error");
    const again = join("9-4");
    expect(opened.at(-1)?.after).toBe("9-4");
    newest().hello("9-4", true);
    expect(again.hello().resumed).toBe(true);
    expect(join("9-3").ids()).toEqual(["9-4"]);
    newest().hello("9-50", false);
    expect(again.hello().resumed).toBe(false);
    expect(join("9-4").hello().resumed).toBe(false);
  });

  it("continues from a newer page's place without keeping events that it never received", () => {
    const { join, newest } = made();
    join("9-3");
    newest().hello("9-3", true);
    newest().say("error", "", "");
    join("9-20");
    newest().hello("9-20", true);
    expect(join("9-3").hello().resumed).toBe(false);
    expect(join("9-20").hello().resumed).toBe(true);
  });

  it("reconnects if the connection may be dead, once for all pages", () => {
    const { opened, join, newest } = made();
    const page = join("9-3");
    newest().hello("9-3", true);
    join("9-3", true);
    join("9-3", true);
    expect(opened).toHaveLength(2);
    expect(opened[0]?.source.closed).toBe(true);
    newest().hello("9-3", true);
    expect(page.received.filter(({ type }) => type === "hello")).toHaveLength(2);
  });

  it("closes when the last page has left", () => {
    const { shared, opened, join } = made();
    const first = join("");
    const second = join("");
    shared.stop(first.page);
    expect(opened[0]?.source.closed).toBe(false);
    shared.stop(second.page);
    expect(opened[0]?.source.closed).toBe(true);
  });
});
