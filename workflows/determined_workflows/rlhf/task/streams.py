"""Request-reply streams between the master worker (server) and every other worker (clients) over ZeroMQ.

Each worker has one request in flight; further ones wait in the server. A peer proves the allocation's key before it may
send anything else. Nothing is encrypted, as with NCCL, and nothing is pickled.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from determined_workflows.rlhf.task.array_tree import NamedArray
from determined_workflows.rlhf.task.named_array import dumps
from determined_workflows.rlhf.task.registry import unknown_name
from determined_workflows.rlhf.task.stream_client import StreamClient as StreamClient
from determined_workflows.rlhf.task.stream_loop import Pending, ServerLoop
from determined_workflows.rlhf.task.stream_messages import MAX_FRAME_BYTES, check_methods, check_sizes, header
from determined_workflows.rlhf.task.stream_messages import Reply as Reply
from determined_workflows.rlhf.task.stream_messages import Request as Request


class WorkersMissing(TimeoutError):
    """Workers that did not connect in time; ``workers`` are their names."""

    def __init__(self, workers: Sequence[str], seconds: float) -> None:
        super().__init__(f"{len(workers)} workers did not connect within {seconds:g} s: {', '.join(workers)}")
        self.workers = list(workers)


class StreamServer:
    """The master worker's end of all streams. Its methods may be called from any thread.

    Parameters:
        port: port to listen on; 0 takes a free one, which ``port`` then has.
        key: the allocation's key, which every worker proves.
        workers: names of the workers.
        max_frame_bytes: limit of one array; a message has at most four times as many bytes.
        methods: codec of the requests to a worker by its name; ``raw_bytes`` for others.
        host: address to listen on; all by default.

    Raises:
        OSError: the port is taken.

    Example:
        >>> server = StreamServer(port, key, ["actor[0]", "reward[0]"])
        >>> server.wait_for_workers(600)
        >>> server.request("actor[0]", "generate", from_dict({"prompts": prompts}), step=7).result().data
    """

    def __init__(
        self,
        port: int,
        key: bytes,
        workers: Sequence[str],
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        methods: Mapping[str, str] | None = None,
        host: str = "*",
    ) -> None:
        self.workers = list(workers)
        self._methods = dict(methods or {})
        check_methods(self.workers, self._methods)
        self._max_frame_bytes = max_frame_bytes
        self._loop = ServerLoop(host, port, key, self.workers, max_frame_bytes)
        self.port = self._loop.port
        self._thread = threading.Thread(target=self._loop.run, name="streams", daemon=True)
        self._thread.start()

    def wait_for_workers(self, seconds: float) -> None:
        """Waits until every worker has connected. Raises WorkersMissing with the names of those that have not."""
        deadline = time.monotonic() + seconds
        with self._loop.changed:
            while missing := [name for name in self.workers if name not in self._loop.connected]:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise WorkersMissing(missing, seconds)
                self._loop.changed.wait(left)

    def request(
        self,
        worker: str,
        handle: str,
        data: NamedArray | None = None,
        **metadata: Any,  # noqa: ANN401
    ) -> "Future[Reply]":
        """Sends a request and returns a future of its reply. Requests to one worker are answered in their order.

        The arrays of ``data`` are not copied: do not change them before the reply is there. The future of a worker that
        died stays pending: the launch layer names that worker and ends all others.

        Raises:
            KeyError: no worker has this name.
            ValueError: an array or the request is larger than the limit.
            TypeError: data or metadata that cannot be sent.
        """
        if worker not in self.workers:
            raise KeyError(unknown_name("worker", worker, self.workers))
        frames = dumps(data, self._methods.get(worker, "raw_bytes"))
        check_sizes(frames, self._max_frame_bytes, f"the request {handle} to {worker}")
        header(number=0, handle=handle, metadata=metadata)  # refused here, not in the thread
        future: Future[Reply] = Future()
        future.set_running_or_notify_cancel()
        self._loop.submit(Pending(worker, handle, metadata, frames, future))
        return future

    def close(self) -> None:
        """Tells every worker that no request follows, and ends. Requests without a reply fail with ConnectionError."""
        self._loop.stop()
        self._thread.join()
