import { pageBuild, pageEvent } from "@/browser/base";
import type { Change } from "./changes";
import { heardTime } from "./serverClock";

export type Connection = "connecting" | "live" | "lost" | "signed-out";

export interface StreamState {
  connection: Connection;
  /** Time of the loss, in this machine's milliseconds. */
  since: number | null;
  /** True if the master serves another build of the page. */
  outdated: boolean;
}

export interface StreamHandlers {
  onChanges: (changes: Change[]) => void;
  /** Called if events may have been missed: everything shown may be stale. */
  onGap: () => void;
  /** Called when the stream is connected or reconnected. */
  onOpen: () => void;
  /** Called when the master closed the stream because its session has ended. */
  onSignedOut: () => void;
  /** Called when the stream ended or could not be opened. A browser does not report the reason. */
  onLost: () => void;
}

/** The part of EventSource that is used. Tests replace it. */
export interface Source {
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

/** Opens a source. `renew`: an existing one may be dead without an error. */
export type OpenSource = (lastEventId: string, renew: boolean) => Source;

const FIRST_WAIT = 500;
const MAX_WAIT = 10_000;

/** The connection over which the master reports changes. It reconnects, catches up, and reports its loss. */
export class LiveStream {
  private state: StreamState = { connection: "connecting", since: null, outdated: false };
  private readonly listeners = new Set<() => void>();
  private source: Source | null = null;
  private retry: ReturnType<typeof setTimeout> | null = null;
  private wait = FIRST_WAIT;
  /** The event after which the stream continues. */
  private lastEventId: string;

  constructor(
    private readonly open: OpenSource,
    private readonly handlers: StreamHandlers,
    after: string = pageEvent,
  ) {
    this.lastEventId = after;
  }

  start = (): void => this.connect(false);

  /** A laptop that wakes up has a dead connection without an error. */
  renew = (): void => this.connect(true);

  private connect(renew: boolean): void {
    this.stop();
    const source = this.open(this.lastEventId, renew);
    this.source = source;
    source.addEventListener("hello", (event) => this.onHello(event));
    source.addEventListener("change", (event) => this.onChange(event));
    source.addEventListener("bye", (event) => this.onBye(event));
    source.addEventListener("error", () => this.onLost());
  }

  stop = (): void => {
    this.source?.close();
    this.source = null;
    if (this.retry !== null) clearTimeout(this.retry);
    this.retry = null;
  };

  snapshot = (): StreamState => this.state;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private set(change: Partial<StreamState>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }

  private onHello(event: MessageEvent<string>): void {
    const hello = parse(event.data);
    this.wait = FIRST_WAIT;
    this.lastEventId = event.lastEventId || this.lastEventId;
    if (typeof hello.now === "string") heardTime(Date.parse(hello.now));
    const build = typeof hello.build === "string" ? hello.build : "";
    this.set({ connection: "live", since: null, outdated: pageBuild !== "" && build !== "" && build !== pageBuild });
    // Also on the first hello: data that the page has loaded by now may have changed before the stream was open.
    if (hello.resumed !== true) this.handlers.onGap();
    this.handlers.onOpen();
  }

  private onChange(event: MessageEvent<string>): void {
    this.lastEventId = event.lastEventId || this.lastEventId;
    const changes = parse(event.data).changes;
    if (Array.isArray(changes)) this.handlers.onChanges(changes as Change[]);
  }

  private onBye(event: MessageEvent<string>): void {
    if (parse(event.data).reason === "signed-out") {
      this.stop();
      this.set({ connection: "signed-out", since: Date.now() });
      this.handlers.onSignedOut();
      return;
    }
    this.onLost();
  }

  private onLost(): void {
    this.stop();
    if (this.state.connection !== "lost") this.set({ connection: "lost", since: Date.now() });
    this.retry = setTimeout(this.start, this.wait);
    this.wait = Math.min(MAX_WAIT, this.wait * 2);
    this.handlers.onLost();
  }
}

function parse(data: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
