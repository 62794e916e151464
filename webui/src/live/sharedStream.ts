import type { Source } from "./stream";

/** A message from a page to the worker that holds the stream. */
export type WorkerRequest = { kind: "start"; url: string; after: string; renew: boolean } | { kind: "stop" };

/** A message from the worker to a page: an event of the stream, as EventSource would deliver it. */
export interface StreamMessage {
  type: string;
  data: string;
  lastEventId: string;
}

/** Sends a message to one page. */
export type SendToPage = (message: StreamMessage) => void;

interface Place {
  epoch: string;
  number: number;
}

const KEPT = 500;

/**
 * One stream for all pages of a browser. Over HTTP/1.1 a browser opens at most six connections to a master, so the
 * seventh page with a stream of its own would wait forever. A page that joins continues after its last event, as with
 * the master.
 */
export class SharedStream {
  private source: Source | null = null;
  private hello: { fields: Record<string, unknown>; heard: number } | null = null;
  private place: Place | null = null;
  /** All events after this number are in `recent`. */
  private floor = 0;
  private recent: { number: number; message: StreamMessage }[] = [];
  /** Each page with the event after which it continues, until it receives its hello. */
  private readonly pages = new Map<SendToPage, string>();

  constructor(
    private readonly open: (url: string, after: string) => Source,
    private readonly now: () => number = () => Date.now(),
  ) {}

  /** Adds a page. `renew`: the connection may be dead without an error. */
  start(page: SendToPage, url: string, after: string, renew: boolean): void {
    this.pages.set(page, after);
    if (renew && this.hello) this.disconnect();
    if (!this.source) this.connect(url, after);
    else if (this.hello) this.greet(page, after);
  }

  stop(page: SendToPage): void {
    this.pages.delete(page);
    if (this.pages.size === 0) this.disconnect();
  }

  private connect(url: string, after: string): void {
    const source = this.open(url, after);
    this.source = source;
    this.hello = null;
    source.addEventListener("hello", (event) => this.onHello(event));
    source.addEventListener("change", (event) => this.onChange(event));
    source.addEventListener("bye", (event) =>
      this.end({ type: "bye", data: event.data, lastEventId: event.lastEventId }),
    );
    source.addEventListener("error", () => this.end({ type: "error", data: "", lastEventId: "" }));
  }

  private disconnect(): void {
    this.source?.close();
    this.source = null;
    this.hello = null;
  }

  private onHello(event: MessageEvent<string>): void {
    const fields = JSON.parse(event.data) as Record<string, unknown>;
    const place = placeOf(event.lastEventId);
    const old = this.place;
    const goesOn =
      fields.resumed === true &&
      place !== null &&
      place.epoch === old?.epoch &&
      this.floor <= place.number &&
      place.number <= old.number;
    if (!goesOn) this.floor = place?.number ?? Infinity;
    this.recent = goesOn ? this.recent.filter(({ number }) => number <= place.number) : [];
    this.place = place;
    this.hello = { fields, heard: this.now() };
    for (const [page, after] of this.pages) this.greet(page, after);
  }

  private onChange(event: MessageEvent<string>): void {
    const message = { type: "change", data: event.data, lastEventId: event.lastEventId };
    const place = placeOf(event.lastEventId);
    if (place) {
      this.place = place;
      this.recent.push({ number: place.number, message });
      if (this.recent.length > KEPT) this.floor = this.recent.shift()!.number;
    }
    for (const page of this.pages.keys()) {
      this.pages.set(page, event.lastEventId);
      page(message);
    }
  }

  private greet(page: SendToPage, after: string): void {
    const { fields, heard } = this.hello!;
    const from = placeOf(after);
    const resumed = from !== null && from.epoch === this.place?.epoch && from.number >= this.floor;
    const now =
      typeof fields.now === "string" ? new Date(Date.parse(fields.now) + this.now() - heard).toISOString() : fields.now;
    const newest = this.place ? `${this.place.epoch}-${this.place.number}` : "";
    page({ type: "hello", data: JSON.stringify({ ...fields, now, resumed }), lastEventId: resumed ? after : newest });
    if (resumed) for (const { number, message } of this.recent) if (number > from.number) page(message);
    this.pages.set(page, newest);
  }

  /** Ends the connection. Pages that want to continue call `start` again. */
  private end(message: StreamMessage): void {
    this.disconnect();
    const pages = [...this.pages.keys()];
    this.pages.clear();
    for (const page of pages) page(message);
  }
}

function placeOf(id: string): Place | null {
  const found = /^(\d+)-(\d+)$/.exec(id);
  return found ? { epoch: found[1]!, number: Number(found[2]) } : null;
}
