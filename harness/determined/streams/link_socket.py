"""A websocket as a stream uses it."""

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from determined.streams.records import StreamBroken
from determined.streams.windowed import Cut

NORMAL = 1000
FIRST_OWN, LAST_OWN = 4000, 4999
"""Close codes of this protocol: with one of them the reason says why the stream cannot go on."""


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
    is_refused = FIRST_OWN <= received.code <= LAST_OWN
    return Cut(received.reason, is_final=is_refused or received.code == NORMAL)
