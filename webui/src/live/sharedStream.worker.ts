import { SharedStream, type StreamMessage, type WorkerRequest } from "./sharedStream";

/** The global scope of the worker, one for all pages of this browser on this master. */
interface SharedScope {
  onconnect: ((event: MessageEvent) => void) | null;
}

const shared = new SharedStream(
  (url, after) => new EventSource(after ? `${url}?lastEventId=${encodeURIComponent(after)}` : url),
);

(self as unknown as SharedScope).onconnect = (event) => {
  const port = event.ports[0]!;
  const sendToPage = (message: StreamMessage) => port.postMessage(message);
  port.onmessage = ({ data }: MessageEvent<WorkerRequest>) => {
    if (data.kind === "start") shared.start(sendToPage, data.url, data.after, data.renew);
    else shared.stop(sendToPage);
  };
};
