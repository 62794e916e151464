import { StreamRelay, type Told, type Wish } from "./relay";

/** One for all pages of a browser on this master. */
interface SharedScope {
  onconnect: ((event: MessageEvent) => void) | null;
}

const relay = new StreamRelay((url, after) => new EventSource(after ? `${url}?lastEventId=${encodeURIComponent(after)}` : url));

(self as unknown as SharedScope).onconnect = (event) => {
  const port = event.ports[0]!;
  const tell = (told: Told) => port.postMessage(told);
  port.onmessage = ({ data }: MessageEvent<Wish>) => {
    if (data.kind === "start") relay.start(tell, data.url, data.after, data.renew);
    else relay.stop(tell);
  };
};
