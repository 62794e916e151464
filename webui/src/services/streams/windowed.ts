import { decode, encode, encodeOffset, MAX_CONTENT_BYTES, StreamBroken, type StreamRecord } from "./records";

/** Bytes that one side sends before the other has taken them. */
const WINDOW_BYTES = 1024 * 1024;
const ACKNOWLEDGE_BYTES = WINDOW_BYTES / 4;
export const HEARTBEAT_MS = 10_000;
/** A connection over which nothing came for this time counts as cut. */
export const SILENCE_MS = 3 * HEARTBEAT_MS;
const NORMAL = 1000;
/** Close codes of this protocol: with one of them the reason says why the stream cannot go on. */
const FIRST_OWN = 4000;
const LAST_OWN = 4999;

/** The part of WebSocket that is used once it is open. Tests replace it. */
export interface Socket {
  send(message: Uint8Array<ArrayBuffer>): void;
  close(code?: number): void;
  onmessage: ((event: MessageEvent<unknown>) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
}

/** How a connection ended. `isFinal`: the other side has ended the stream by intention. */
export interface Cut {
  isFinal: boolean;
  reason: string;
}

/** Thrown to those who send or wait for a record after the end of the stream. */
export class StreamClosed extends Error {}

/**
 * This side of a stream: sends at most a window of unacknowledged bytes, and continues over another connection. The
 * same as harness/determined/streams/windowed.py, which explains the protocol.
 */
export class WindowedStream {
  private unacknowledged: Uint8Array<ArrayBuffer>[] = [];
  /** Bytes that the other side has taken, and that were given to `send`. */
  private acknowledged = 0;
  private added = 0;
  private inbox: StreamRecord[] = [];
  /** Bytes that came, that `receive` returned, and of which the other side was told. */
  private arrived = 0;
  private taken = 0;
  private told = 0;
  private toldAt = 0;
  /** The present connection, after its first message. */
  private socket: Socket | null = null;
  private sending: Promise<void> = Promise.resolve();
  private waiting: (() => void)[] = [];
  private isClosed = false;

  /** Adds a record, in the order of the calls; waits while the window is full. Throws StreamClosed after `close`. */
  send(record: StreamRecord): Promise<void> {
    if (record.content.length > MAX_CONTENT_BYTES) throw new RangeError("a record of more than 64 KiB");
    this.sending = this.sending.then(() => this.add(encode(record)));
    return this.sending;
  }

  private async add(message: Uint8Array<ArrayBuffer>): Promise<void> {
    while (!this.isClosed && this.added - this.acknowledged + message.length > WINDOW_BYTES) await this.change();
    if (this.isClosed) throw new StreamClosed();
    this.unacknowledged.push(message);
    this.added += message.length;
    this.socket?.send(message);
  }

  /** Returns the next record. Throws StreamClosed after `close`. */
  async receive(): Promise<StreamRecord> {
    let record: StreamRecord | undefined;
    while (!(record = this.inbox.shift())) {
      if (this.isClosed) throw new StreamClosed();
      await this.change();
    }
    this.taken += record.content.length + 1;
    if (this.taken - this.told >= ACKNOWLEDGE_BYTES) this.tell();
    return record;
  }

  /** Tells the other side now what was taken: it waits for that, and not for room. */
  acknowledge(): void {
    if (this.taken !== this.told) this.tell();
  }

  close(): void {
    this.isClosed = true;
    this.changed();
  }

  /** Uses an open connection until it is cut. Throws StreamBroken if the other side breaks the protocol. */
  attach(socket: Socket): Promise<Cut> {
    // The other side sends again what came and was not taken.
    this.inbox = [];
    this.arrived = this.told = this.taken;
    return new Promise((resolve, reject) => {
      let silence: ReturnType<typeof setTimeout>;
      const heartbeat = setInterval(() => this.beat(), HEARTBEAT_MS / 4);
      const end = (settle: () => void) => {
        clearTimeout(silence);
        clearInterval(heartbeat);
        this.socket = socket.onmessage = socket.onclose = null;
        settle();
      };
      const expectMore = () => {
        clearTimeout(silence);
        silence = setTimeout(() => {
          socket.close();
          end(() => resolve({ isFinal: false, reason: "the other side was silent" }));
        }, SILENCE_MS);
      };
      socket.onclose = ({ code, reason }) => end(() => resolve(cutOf(code, reason)));
      socket.onmessage = ({ data }) => {
        expectMore();
        try {
          this.take(decode(data), socket);
          // A browser delays the timers of a page that nobody sees, but no message.
          this.beat();
        } catch (problem) {
          socket.close();
          end(() => reject(problem as Error));
        }
      };
      expectMore();
      socket.send(encodeOffset(this.taken));
    });
  }

  private take(message: StreamRecord | number, socket: Socket): void {
    if (typeof message === "number") {
      this.drop(message);
      if (this.socket !== socket) {
        this.socket = socket;
        this.toldAt = Date.now();
        for (const each of this.unacknowledged) socket.send(each);
      }
    } else {
      if (this.socket !== socket) throw new StreamBroken("the first message is no offset");
      this.arrived += message.content.length + 1;
      if (this.arrived - this.taken > WINDOW_BYTES) throw new StreamBroken("the other side sent more than the window");
      this.inbox.push(message);
    }
    this.changed();
  }

  /** Drops what the other side has taken. */
  private drop(offset: number): void {
    if (offset < this.acknowledged || offset > this.added)
      throw new StreamBroken(`the other side has taken ${offset} bytes of ${this.added}`);
    let first: Uint8Array | undefined;
    while ((first = this.unacknowledged[0]) && this.acknowledged + first.length <= offset) {
      this.acknowledged += first.length;
      this.unacknowledged.shift();
    }
    if (this.acknowledged !== offset) throw new StreamBroken("the other side has taken a part of a record");
  }

  private beat(): void {
    if (Date.now() - this.toldAt >= HEARTBEAT_MS) this.tell();
  }

  private tell(): void {
    if (!this.socket) return;
    this.told = this.taken;
    this.toldAt = Date.now();
    this.socket.send(encodeOffset(this.taken));
  }

  private change(): Promise<void> {
    return new Promise((wake) => this.waiting.push(wake));
  }

  private changed(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const wake of waiting) wake();
  }
}

function cutOf(code: number, reason: string): Cut {
  return { isFinal: code === NORMAL || (code >= FIRST_OWN && code <= LAST_OWN), reason };
}
