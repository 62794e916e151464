import { masterUrl } from "@/browser/base";
import type { StreamMessage, WorkerRequest } from "./sharedStream";
import type { Source } from "./stream";

let isShared = typeof SharedWorker !== "undefined";

/** Opens the stream: shared by all pages of this browser in a worker if that is supported, else for this page alone. */
export function openEventSource(after: string, renew: boolean): Source {
  const url = new URL(masterUrl("/detent/stream"), location.href).href;
  if (isShared) return new SharedSource(url, after, renew);
  return new EventSource(after ? `${url}?lastEventId=${encodeURIComponent(after)}` : url);
}

class SharedSource implements Source {
  private readonly listeners = new Map<string, (event: MessageEvent<string>) => void>();
  private readonly port: MessagePort;

  constructor(url: string, after: string, renew: boolean) {
    const worker = new SharedWorker(new URL("./sharedStream.worker.ts", import.meta.url), { type: "module" });
    this.port = worker.port;
    worker.onerror = () => {
      // The worker of an older build no longer exists. The next attempt opens a stream for this page alone.
      isShared = false;
      this.listeners.get("error")?.(new MessageEvent("error"));
    };
    this.port.onmessage = ({ data }: MessageEvent<StreamMessage>) =>
      this.listeners.get(data.type)?.(new MessageEvent(data.type, { data: data.data, lastEventId: data.lastEventId }));
    this.send({ kind: "start", url, after, renew });
    // The worker does not notice when a page is closed.
    addEventListener("pagehide", this.close);
  }

  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void {
    this.listeners.set(type, listener);
  }

  close = (): void => {
    removeEventListener("pagehide", this.close);
    this.send({ kind: "stop" });
    this.port.close();
  };

  private send(request: WorkerRequest): void {
    this.port.postMessage(request);
  }
}
