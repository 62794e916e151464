"""A TCP forwarder between a browser and a master that counts the bytes of each direction, including the stream of a
shared worker."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass
class Counted:
    url: str
    received: int = 0
    """Bytes from the master."""
    sent: int = 0
    """Bytes to the master."""


@contextmanager
def counting_proxy(url: str) -> Iterator[Counted]:
    """Forwards connections to the master at ``url``. Yields the forwarder's own address and its counts."""
    target = urlsplit(url)
    counted = Counted("")
    stop = asyncio.Event()
    is_ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_master, to_master = await asyncio.open_connection(target.hostname, target.port)
        with contextlib.suppress(asyncio.CancelledError):  # asyncio.run cancels it at the end
            await asyncio.gather(
                _copy(reader, to_master, counted, "sent"), _copy(from_master, writer, counted, "received")
            )

    async def serve() -> None:
        server = await asyncio.start_server(forward, "127.0.0.1", 0)
        counted.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        loops.append(asyncio.get_running_loop())
        is_ready.set()
        await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    is_ready.wait()
    try:
        yield counted
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(10)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counted: Counted, direction: str) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            setattr(counted, direction, getattr(counted, direction) + len(data))
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(ConnectionError):
        writer.close()
