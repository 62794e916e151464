"""A reverse proxy that serves a master under a path, as people put one before it; runs in a thread of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator


class PrefixProxy:
    """Strips the prefix and says so in a header. One request a connection, so that nothing but its head is read."""

    def __init__(self, port: int, prefix: str) -> None:
        self._port, self._prefix = port, prefix
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listening = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(10)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            # A browser that was cut off may have come again meanwhile. Only our own tasks are cancelled: one of asyncio
            # that is accepting a connection would leave its socket open.
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                for writer in self._writers:
                    writer.transport.abort()
                for task in self._serving:
                    task.cancel()
                await asyncio.wait(others, timeout=0.05)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        writers = [writer]
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
            method, path, version = first.split(" ")
            if not path.startswith(f"{self._prefix}/"):
                writer.write(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                raise ConnectionError(path)
            kept = [field for field in fields if not field.lower().startswith("connection:")]
            lines = [f"{method} {path.removeprefix(self._prefix)} {version}", *kept]
            lines += [f"X-Forwarded-Prefix: {self._prefix}", "Connection: close", "", ""]
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._port)
            writers.append(there_writer)
            self._writers.add(there_writer)
            there_writer.write("\r\n".join(lines).encode("latin-1"))
            forth = asyncio.create_task(_pour(reader, there_writer))
            try:
                await _pour(there_reader, writer)
            finally:
                forth.cancel()
                await asyncio.gather(forth, return_exceptions=True)
        for each in writers:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                each.close()
                await each.wait_closed()
            self._writers.discard(each)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@contextlib.contextmanager
def prefix_proxy(port: int, prefix: str) -> Iterator[PrefixProxy]:
    made = PrefixProxy(port, prefix)
    try:
        yield made
    finally:
        made.close()
