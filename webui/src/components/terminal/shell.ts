import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { messageOf } from "@/api/problem";
import { Kind, MAX_CONTENT_BYTES, recordOf, valueOf } from "@/services/streams/records";
import { TaskSession } from "@/services/streams/session";
import { StreamClosed } from "@/services/streams/windowed";
import { endText } from "./endText";
import { followStylePolicy } from "./stylePolicy";
import { MIN_CONTRAST, terminalFont, terminalTheme } from "./theme";

export interface ShellState {
  phase: "connecting" | "open" | "reconnecting" | "ended";
  /** Why it ended; empty before. */
  text: string;
}

const RESIZE_PAUSE_MS = 50;
const SCROLLBACK_LINES = 5000;

/** A shell in a task and its terminal, which may be shown, hidden and shown again. */
export class Shell {
  /** What shows it; a child of the place that shows it. */
  readonly host = document.createElement("div");
  private readonly terminal: Terminal;
  private readonly fitting = new FitAddon();
  private readonly listeners = new Set<() => void>();
  private session: TaskSession | null = null;
  private state: ShellState = { phase: "connecting", text: "" };
  private resizing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly taskId: string,
    private readonly rank: number,
    private readonly label: string,
  ) {
    followStylePolicy();
    this.terminal = new Terminal({
      fontFamily: terminalFont(),
      fontSize: 13,
      minimumContrastRatio: MIN_CONTRAST,
      scrollback: SCROLLBACK_LINES,
      theme: terminalTheme(),
    });
    this.terminal.loadAddon(this.fitting);
    this.terminal.onData((text) => this.input(new TextEncoder().encode(text)));
    this.terminal.onBinary((text) => this.input(Uint8Array.from(text, (sign) => sign.charCodeAt(0))));
    this.terminal.onResize(() => this.resized());
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): ShellState => this.state;

  /** Shows the terminal in a place of the page, and begins the session when it is shown first. */
  show(place: HTMLElement, onKey: (event: KeyboardEvent) => boolean): void {
    place.append(this.host);
    if (!this.terminal.element) {
      this.terminal.open(this.host);
      this.terminal.textarea?.setAttribute("aria-label", this.label);
    }
    this.terminal.attachCustomKeyEventHandler(onKey);
    this.fit();
    if (this.session) return;
    this.terminal.focus();
    this.begin();
  }

  hide(): void {
    this.host.remove();
  }

  /** Fits the terminal to its place. */
  fit(): void {
    if (this.host.clientWidth > 0) this.fitting.fit();
  }

  adjust(options: { screenReaderMode: boolean }): void {
    Object.assign(this.terminal.options, { ...options, theme: terminalTheme() });
  }

  get selection(): string {
    return this.terminal.getSelection();
  }

  /** Ends the session and what it runs. */
  end(): void {
    this.session?.close();
  }

  dispose(): void {
    this.end();
    clearTimeout(this.resizing);
    this.terminal.dispose();
    this.host.remove();
  }

  private begin(): void {
    const { rows, cols: columns } = this.terminal;
    const request = { taskId: this.taskId, rank: this.rank, rows, columns };
    const session = new TaskSession(request, (state) => {
      if (this.state.phase !== "ended")
        this.change({ phase: state === "connected" ? "open" : "reconnecting", text: "" });
    });
    this.session = session;
    const printed = this.print(session);
    const over = (text: string) => void printed.then(() => this.over(text));
    session.run().then(
      () => over("You ended the shell."),
      (problem: unknown) => over(sentence(messageOf(problem))),
    );
  }

  /** Prints until the end, which it notes if the task tells it. */
  private async print({ stream }: TaskSession): Promise<void> {
    try {
      for (;;) {
        const record = await stream.receive();
        if (record.kind === Kind.STATUS) {
          stream.acknowledge();
          return this.over(endText(valueOf(record)));
        }
        // No more is taken than the terminal shows, so that output without an end does not fill the memory.
        if (record.kind === Kind.OUTPUT || record.kind === Kind.ERROR_OUTPUT)
          await new Promise<void>((shown) => this.terminal.write(record.content, shown));
      }
    } catch (problem) {
      if (!(problem instanceof StreamClosed)) this.over(sentence(messageOf(problem)));
    }
  }

  /** Notes the end, of which the first reason counts. */
  private over(text: string): void {
    if (this.state.phase !== "ended") this.change({ phase: "ended", text });
  }

  private input(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.state.phase === "ended") return;
    for (let from = 0; from < bytes.length; from += MAX_CONTENT_BYTES)
      this.send(Kind.INPUT, bytes.slice(from, from + MAX_CONTENT_BYTES));
  }

  /** Sends the newest size after changes; those that follow soon are one. */
  private resized(): void {
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => {
      const { rows, cols: columns } = this.terminal;
      this.send(Kind.RESIZE, recordOf(Kind.RESIZE, { rows, columns }).content);
    }, RESIZE_PAUSE_MS);
  }

  private send(kind: Kind, content: Uint8Array<ArrayBuffer>): void {
    // What is typed after the end has nobody to go to.
    this.session?.stream.send({ kind, content }).catch(() => undefined);
  }

  private change(state: ShellState): void {
    this.state = state;
    for (const listener of this.listeners) listener();
  }
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;
}
