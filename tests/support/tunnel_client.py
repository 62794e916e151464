"""A client of the master's tunnels: ``python -m tests.support.tunnel_client URL [TOKEN]`` as OpenSSH's ProxyCommand."""

import asyncio
import contextlib
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import websockets.asyncio.client
import websockets.sync.client
from tests.support.free_ports import tcp_pair
from websockets.exceptions import ConnectionClosed

READ_BYTES = 32 << 10


def _dialed(url: str, source: str) -> socket.socket:
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port or 80), 60, (source, 0))


def _options(url: str, source: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {
        "uri": url.replace("http:", "ws:", 1),
        "sock": _dialed(url, source),
        "additional_headers": headers,
        "ping_interval": None,
        "proxy": None,
        "max_size": None,
    }


def connect(
    url: str, *, source: str = "", token: str = "", headers: Mapping[str, str] = MappingProxyType({})
) -> websockets.sync.client.ClientConnection:
    """Connects a tunnel. ``source``: the address of this machine that it comes from. Raises InvalidStatus."""
    options = _options(url, source, token)
    options["additional_headers"] |= headers
    return websockets.sync.client.connect(**options)


@contextlib.asynccontextmanager
async def tunnel(url: str, *, source: str = "", token: str = "") -> AsyncIterator[socket.socket]:
    """Connects a tunnel, and yields a socket that carries its bytes. Raises InvalidStatus."""
    async with websockets.asyncio.client.connect(**_options(url, source, token)) as link:
        ours, theirs = tcp_pair()
        ours.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=ours)

        async def up() -> None:
            while data := await reader.read(READ_BYTES):
                await link.send(data)

        async def down() -> None:
            with contextlib.suppress(ConnectionClosed):
                while True:
                    message = await link.recv()
                    assert isinstance(message, bytes)
                    writer.write(message)
                    await writer.drain()
            writer.close()

        tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
        try:
            yield theirs
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            theirs.close()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def main(url: str, token: str = "") -> None:
    link = connect(url, token=token)

    def up() -> None:
        while data := os.read(0, READ_BYTES):
            link.send(data)
        link.close()

    threading.Thread(target=up, daemon=True).start()
    for message in link:
        assert isinstance(message, bytes)
        os.write(1, message)


if __name__ == "__main__":
    main(*sys.argv[1:])
