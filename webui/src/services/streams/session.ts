import { api, got } from "@/api/client";
import { Problem } from "@/api/problem";
import type { components } from "@/api/schema";
import { masterUrl } from "@/browser/base";
import { SUBPROTOCOL } from "./records";
import { type Socket, WindowedStream } from "./windowed";

type StreamAnswer = components["schemas"]["StreamAnswer"];
type StreamBody = components["schemas"]["StreamBody"];

/** As long as an agent keeps a session whose connection was cut. */
const PATIENCE_MS = 60_000;
const FIRST_WAIT_MS = 100;
const LAST_WAIT_MS = 2_000;
/** A connection that lived this long is made again at once: a browser delays the timers of a page that nobody sees. */
const LONG_LIVED_MS = 10_000;
const NORMAL = 1000;
/** Answers of a master that is just restarting, of the proxy before it, or while its agents have not come back. */
const PASSING = new Set([0, 409, 502, 503, 504]);

/** The session cannot be continued; the message says why. */
export class SessionEnded extends Error {}
class NotConnected extends Error {}

/** What the session is about: a shell on a terminal of this size, in the container of this rank. */
export interface ShellRequest {
  taskId: string;
  rank: number;
  rows: number;
  columns: number;
}

/** A session in a task, which continues over a new connection when one is cut. */
export class TaskSession {
  readonly stream = new WindowedStream();
  private sessionId = "";
  private socket: Socket | null = null;
  private isClosing = false;

  constructor(
    private readonly request: ShellRequest,
    private readonly onState: (state: "connected" | "reconnecting") => void,
  ) {}

  /** Connects until the end of the session. Throws if it cannot be opened or continued. */
  async run(): Promise<void> {
    let lostAt: number | null = null;
    let wait = FIRST_WAIT_MS;
    try {
      while (!this.isClosing) {
        const startedAt = Date.now();
        try {
          if (await this.connect()) return;
          lostAt = Date.now();
          wait = lostAt - startedAt > LONG_LIVED_MS ? 0 : FIRST_WAIT_MS;
        } catch (problem) {
          if (lostAt === null || !isPassing(problem) || Date.now() - lostAt > PATIENCE_MS) throw problem;
        }
        if (this.isClosing) return;
        this.onState("reconnecting");
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        wait = Math.min(Math.max(2 * wait, FIRST_WAIT_MS), LAST_WAIT_MS);
      }
    } finally {
      this.stream.close();
    }
  }

  /** Ends the session, and with it its program. */
  close(): void {
    this.isClosing = true;
    this.socket?.close(NORMAL);
    this.stream.close();
  }

  /** Uses one connection. Returns true if the session has ended, false if the connection was cut. */
  private async connect(): Promise<boolean> {
    const { taskId, rank, rows, columns } = this.request;
    const terminal = { rows, columns, type: "xterm-256color" };
    const body: StreamBody = { argv: [], port: 0, rank, terminal, sessionId: this.sessionId };
    const answer = await got(
      api.POST("/detent/tasks/{task_id}/streams", { params: { path: { task_id: taskId } }, body }),
    );
    this.sessionId = answer.sessionId;
    const socket = await opened(answer);
    if (this.isClosing) {
      socket.close(NORMAL);
      return true;
    }
    this.socket = socket;
    const attached = this.stream.attach(socket);
    this.onState("connected");
    const { isFinal, reason } = await attached;
    this.socket = null;
    if (isFinal && reason !== "") throw new SessionEnded(reason);
    return isFinal;
  }
}

function isPassing(problem: unknown): boolean {
  return problem instanceof NotConnected || (problem instanceof Problem && PASSING.has(problem.status));
}

/** Connects a stream. A browser does not say why a websocket could not be opened. */
function opened({ streamId, key }: StreamAnswer): Promise<Socket> {
  const url = new URL(masterUrl(`/detent/streams/${streamId}`), window.location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const socket = new WebSocket(url, [SUBPROTOCOL, key]);
  socket.binaryType = "arraybuffer";
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve(socket);
    socket.onclose = () =>
      reject(new NotConnected("The websocket to the master could not be opened; does a proxy before it pass them on?"));
  });
}
