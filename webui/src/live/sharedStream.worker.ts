import { SharedStream, type Told, type Wish } from "./sharedStream";

/** One for all pages of a browser on this master. */
interface SharedScope {
  onconnect: ((event: MessageEvent) => void) | null;
}

const shared = new SharedStream(
  (url, after) => new EventSource(after ? `${url}?lastEventId=${encodeURIComponent(after)}` : url),
);

(self as unknown as SharedScope).onconnect = (event) => {
  const port = event.ports[0]!;
  const tell = (told: Told) => port.postMessage(told);
  port.onmessage = ({ data }: MessageEvent<Wish>) => {
    if (data.kind === "start") shared.start(tell, data.url, data.after, data.renew);
    else shared.stop(tell);
  };
};
