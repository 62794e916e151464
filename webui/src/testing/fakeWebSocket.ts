import { vi } from "vitest";
import { decode, encode, encodeOffset, Kind, recordOf, type StreamRecord } from "@/services/streams/records";

/** A websocket whose other side is the test, as an agent. */
export class FakeWebSocket {
  static all: FakeWebSocket[] = [];
  /** False: connections fail. */
  static accepts = true;
  binaryType = "";
  onopen: (() => void) | null = null;
  onmessage: ((event: MessageEvent<unknown>) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  sent: (StreamRecord | number)[] = [];
  closedWith: number | null = null;

  constructor(
    readonly url: URL,
    readonly protocols: string[],
  ) {
    FakeWebSocket.all.push(this);
    queueMicrotask(() => (FakeWebSocket.accepts ? this.onopen?.() : this.onclose?.({ code: 1006 } as CloseEvent)));
  }

  send(message: Uint8Array<ArrayBuffer>): void {
    this.sent.push(decode(message.slice().buffer));
  }

  close(code = 1005): void {
    this.closedWith = code;
    queueMicrotask(() => this.onclose?.({ code, reason: "" } as CloseEvent));
  }

  /** The input that came from the page, as text. */
  get input(): string {
    const parts = this.sent.map((each) => (typeof each === "object" && each.kind === Kind.INPUT ? each.content : []));
    return new TextDecoder().decode(Uint8Array.from(parts.flatMap((part) => [...part])));
  }

  taken(offset: number): void {
    this.deliver(encodeOffset(offset));
  }

  output(text: string): void {
    this.deliver(encode({ kind: Kind.OUTPUT, content: new TextEncoder().encode(text) }));
  }

  status(value: object): void {
    this.deliver(encode(recordOf(Kind.STATUS, value)));
  }

  cut(code = 1006, reason = ""): void {
    this.onclose?.({ code, reason } as CloseEvent);
  }

  private deliver(message: Uint8Array<ArrayBuffer>): void {
    this.onmessage?.({ data: message.slice().buffer } as MessageEvent);
  }
}

/** Replaces the browser's websockets. Returns those that were opened. */
export function fakeWebSockets(): FakeWebSocket[] {
  FakeWebSocket.all = [];
  FakeWebSocket.accepts = true;
  vi.stubGlobal("WebSocket", FakeWebSocket);
  return FakeWebSocket.all;
}
