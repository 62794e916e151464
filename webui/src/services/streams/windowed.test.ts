import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { decode, encode, encodeOffset, Kind, StreamBroken, type StreamRecord } from "./records";
import { HEARTBEAT_MS, SILENCE_MS, StreamClosed, WindowedStream, type Socket } from "./windowed";

/** One end of a connection that is cut after a number of messages. */
class Pipe implements Socket {
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  other!: Pipe;
  private isOpen = true;

  constructor(private readonly left: { messages: number }) {}

  send(message: Uint8Array<ArrayBuffer>): void {
    if (!this.isOpen) return;
    if (this.left.messages-- <= 0) return this.close();
    const data = message.slice().buffer;
    queueMicrotask(() => this.other.isOpen && this.other.onmessage?.({ data } as MessageEvent));
  }

  close(code = 1006, reason = ""): void {
    for (const end of [this, this.other]) {
      if (!end.isOpen) continue;
      end.isOpen = false;
      queueMicrotask(() => end.onclose?.({ code, reason } as CloseEvent));
    }
  }
}

function connected(messages = Infinity): [Pipe, Pipe] {
  const left = { messages };
  const [one, two] = [new Pipe(left), new Pipe(left)];
  [one.other, two.other] = [two, one];
  return [one, two];
}

/** Connects both sides again after each cut, the last time for good. */
async function join(one: WindowedStream, two: WindowedStream, cuts: number[] = []): Promise<void> {
  for (const messages of [...cuts, Infinity]) {
    const [left, right] = connected(messages);
    await Promise.all([one.attach(left), two.attach(right)]);
  }
}

async function taken(stream: WindowedStream, count: number): Promise<StreamRecord[]> {
  const records = [];
  for (let index = 0; index < count; index++) records.push(await stream.receive());
  return records;
}

const input = (...bytes: number[]): StreamRecord => ({ kind: Kind.INPUT, content: Uint8Array.from(bytes) });
const large: StreamRecord = { kind: Kind.INPUT, content: new Uint8Array(64 * 1024 - 1) };
/** As many large records as one window has room for. */
const FULL = 16;
const plain = (records: StreamRecord[]) => records.map(({ kind, content }) => [kind, [...content]]);
/** A socket whose other side is the test. */
function scripted() {
  const sent: (StreamRecord | number)[] = [];
  const socket: Socket = {
    onmessage: null,
    onclose: null,
    send: (message) => void sent.push(decode(message.slice().buffer)),
    close: vi.fn(),
  };
  const tell = (message: Uint8Array<ArrayBuffer>) =>
    socket.onmessage?.({ data: message.slice().buffer } as MessageEvent);
  return { sent, socket, tell };
}

afterEach(() => void vi.useRealTimers());

describe("windowed streams", () => {
  it("deliver each record once and in order however often the connection is cut", async () => {
    const contents = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 30 });
    const cuts = fc.array(fc.nat(15), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(contents, contents, cuts, async (sent, answered, cut) => {
        const [one, two] = [new WindowedStream(), new WindowedStream()];
        const there = sent.map((each) => input(...each));
        const back = answered.map((each) => ({ ...input(...each), kind: Kind.OUTPUT }));
        void join(one, two, cut);
        for (const record of there) void one.send(record);
        for (const record of back) void two.send(record);
        const [arrived, returned] = await Promise.all([taken(two, there.length), taken(one, back.length)]);
        expect(plain(arrived)).toEqual(plain(there));
        expect(plain(returned)).toEqual(plain(back));
      }),
      { numRuns: 50 },
    );
  });

  it("send records that were on their way when a connection is cut again", async () => {
    const [one, two] = [new WindowedStream(), new WindowedStream()];
    const records = Array.from({ length: 10 }, (_, number) => input(number));
    for (const record of records) void one.send(record);
    void join(one, two, [5, 5]);
    expect(plain(await taken(two, 10))).toEqual(plain(records));
  });

  it("wait when the other side takes nothing, and go on when it has", async () => {
    const [one, two] = [new WindowedStream(), new WindowedStream()];
    void join(one, two);
    for (let index = 0; index < FULL; index++) await one.send(large);
    let isAdded = false;
    const more = one.send(input(1)).then(() => (isAdded = true));
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(isAdded).toBe(false);
    await taken(two, FULL);
    two.acknowledge();
    await more;
    expect(plain(await taken(two, 1))).toEqual(plain([input(1)]));
  });

  it("acknowledge by themselves each quarter of the window", async () => {
    const stream = new WindowedStream();
    const { sent, socket, tell } = scripted();
    void stream.attach(socket);
    tell(encodeOffset(0));
    for (let index = 0; index < 4; index++) tell(encode(large));
    await taken(stream, 3);
    expect(sent).toEqual([0]);
    await taken(stream, 1);
    expect(sent).toEqual([0, 256 * 1024]);
  });

  it("cut off a side that sends more than the window", async () => {
    const { socket, tell } = scripted();
    const attached = new WindowedStream().attach(socket);
    tell(encodeOffset(0));
    for (let index = 0; index <= FULL; index++) tell(encode(large));
    await expect(attached).rejects.toThrow("more than the window");
    expect(socket.close).toHaveBeenCalled();
  });

  it.each([1, 7, 2 ** 52])("end at the offset %d, which was never sent", async (offset) => {
    const stream = new WindowedStream();
    await stream.send(input(1, 2, 3, 4, 5));
    const { socket, tell } = scripted();
    const attached = stream.attach(socket);
    tell(encodeOffset(offset));
    await expect(attached).rejects.toThrow(StreamBroken);
  });

  it.each([
    ["text", "text"],
    ["nothing", new ArrayBuffer(0)],
    ["an unknown kind", Uint8Array.of(8).buffer],
    ["a short offset", Uint8Array.of(Kind.OFFSET, 1).buffer],
    ["too much", new ArrayBuffer(64 * 1024 + 2)],
    ["a record before the offset", encode(input(1)).buffer],
  ])("end at a message that is %s", async (_, data) => {
    const { socket } = scripted();
    const attached = new WindowedStream().attach(socket);
    socket.onmessage?.({ data } as MessageEvent);
    await expect(attached).rejects.toThrow(StreamBroken);
  });

  it("count a connection over which nothing comes as cut", async () => {
    vi.useFakeTimers();
    const { socket, tell } = scripted();
    const attached = new WindowedStream().attach(socket);
    tell(encodeOffset(0));
    vi.advanceTimersByTime(SILENCE_MS);
    expect(await attached).toEqual({ isFinal: false, reason: "the other side was silent" });
  });

  it("tell their offset again and again, so that the other side knows that they live", () => {
    vi.useFakeTimers();
    const { sent, socket, tell } = scripted();
    void new WindowedStream().attach(socket);
    tell(encodeOffset(0));
    vi.advanceTimersByTime(2 * HEARTBEAT_MS);
    expect(sent).toEqual([0, 0, 0]);
  });

  it("answer the heartbeat of the other side when a browser delays their timers", () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { sent, socket, tell } = scripted();
    void new WindowedStream().attach(socket);
    tell(encodeOffset(0));
    vi.setSystemTime(Date.now() + HEARTBEAT_MS);
    tell(encodeOffset(0));
    expect(sent).toEqual([0, 0]);
  });

  it.each([
    [1000, "", true],
    [4000, "the task has ended", true],
    [1006, "", false],
    [1012, "", false],
  ])("say with the code %d of a close whether the other side meant it", async (code, reason, isFinal) => {
    const { socket } = scripted();
    const attached = new WindowedStream().attach(socket);
    socket.onclose?.({ code, reason } as CloseEvent);
    expect(await attached).toEqual({ isFinal, reason });
  });

  it("wake those who wait when they are closed", async () => {
    const stream = new WindowedStream();
    const waiting = stream.receive();
    stream.close();
    await expect(waiting).rejects.toThrow(StreamClosed);
    await expect(stream.send(input(1))).rejects.toThrow(StreamClosed);
  });
});
