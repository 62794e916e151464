"""A TCP proxy that loses answers or forwards nothing. It runs in a thread."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator


class Proxy:
    """Forwards to a master. ``lose_every``: cuts the connection instead of delivering every such answer, after the
    master has processed the request. While dark, it accepts connections and bytes and forwards nothing; when it goes
    light again, it cuts its connections."""

    def __init__(self, port: int, *, lose_every: int = 0) -> None:
        self._target = port
        self._lose_every = lose_every
        self._answers = 0
        self.lost = 0
        self.received = 0
        """Number of bytes that clients have sent."""
        self._dark = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def go_dark(self) -> None:
        self._loop.call_soon_threadsafe(self._dark.set)

    def go_light(self) -> None:
        def light() -> None:
            self._dark.clear()
            self._cut()

        self._loop.call_soon_threadsafe(light)

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self._cut()  # includes connections that were accepted but not yet served
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    def _cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        master_writer = None
        with contextlib.suppress(OSError, asyncio.CancelledError):
            master_reader, master_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(master_writer)
            talk = _Talk()
            forth = asyncio.create_task(self._forth(reader, master_writer, talk))
            back = asyncio.create_task(self._back(master_reader, writer, talk))
            await asyncio.wait({forth, back}, return_when=asyncio.FIRST_COMPLETED)
            for task in (forth, back):
                task.cancel()
            await asyncio.gather(forth, back, return_exceptions=True)
        for open_writer in (writer, master_writer):
            if open_writer is not None:
                self._writers.discard(open_writer)
                open_writer.transport.abort()

    async def _forth(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, talk: "_Talk") -> None:
        while data := await reader.read(65536):
            self.received += len(data)
            if self._dark.is_set():
                continue
            if data.startswith(b"GET /agents"):
                talk.is_link = True
            talk.is_asked = True
            writer.write(data)
            await writer.drain()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, talk: "_Talk") -> None:
        while data := await reader.read(65536):
            if self._dark.is_set():
                continue
            if talk.is_asked and not talk.is_link:
                talk.is_asked = False
                self._answers += 1
                if self._lose_every and self._answers % self._lose_every == 0:
                    self.lost += 1
                    return
            writer.write(data)
            await writer.drain()


class _Talk:
    """State of one connection. ``is_asked``: a request is in progress; ``is_link``: an agent's link, not HTTP."""

    is_asked = False
    is_link = False


@contextlib.contextmanager
def proxy(port: int, *, lose_every: int = 0) -> Iterator[Proxy]:
    created = Proxy(port, lose_every=lose_every)
    try:
        yield created
    finally:
        created.close()
