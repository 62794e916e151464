"""A websocket as a stream uses it."""

from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from determined.streams.records import StreamBroken, is_final
from determined.streams.windowed import Cut


def address_of(master: str, stream_id: str) -> str:
    """Returns the address of a stream at a master.

    >>> address_of("https://master/base", "a1")
    'wss://master/base/detent/streams/a1'
    """
    scheme, place, path, _, _ = urlsplit(master if "://" in master else f"http://{master}")
    path = f"{path.rstrip('/')}/detent/streams/{stream_id}"
    return urlunsplit(("wss" if scheme == "https" else "ws", place, path, "", ""))


class LinkSocket:
    """One connection of the ``websockets`` package."""

    def __init__(self, link: ClientConnection) -> None:
        self._link = link

    async def send(self, message: bytes, /) -> None:
        try:
            await self._link.send(message)
        except ConnectionClosed as closed:
            raise _cut(closed) from closed

    async def receive(self) -> bytes:
        try:
            message = await self._link.recv()
        except ConnectionClosed as closed:
            raise _cut(closed) from closed
        if isinstance(message, str):
            raise StreamBroken("a stream has binary messages only")
        return message


def _cut(closed: ConnectionClosed) -> Cut:
    received = closed.rcvd
    if received is None:
        return Cut("the connection was lost")
    return Cut(received.reason, is_final=is_final(received.code))
