import { masterUrl } from "@/app/base";
import type { Told, Wish } from "./sharedStream";
import type { Source } from "./stream";

let isShared = typeof SharedWorker !== "undefined";

/** The stream, held for all pages of this browser by a worker where there are such, else by this page alone. */
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
      // A worker of an older build is gone with it; the next try is a stream of this page's own.
      isShared = false;
      this.listeners.get("error")?.(new MessageEvent("error"));
    };
    this.port.onmessage = ({ data }: MessageEvent<Told>) =>
      this.listeners.get(data.type)?.(new MessageEvent(data.type, { data: data.data, lastEventId: data.lastEventId }));
    this.say({ kind: "start", url, after, renew });
    // The worker is not told when a page goes.
    addEventListener("pagehide", this.close);
  }

  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void {
    this.listeners.set(type, listener);
  }

  close = (): void => {
    removeEventListener("pagehide", this.close);
    this.say({ kind: "stop" });
    this.port.close();
  };

  private say(wish: Wish): void {
    this.port.postMessage(wish);
  }
}
