"""The websocket of both ends of a stream, which their keys admit."""

import asyncio
from dataclasses import dataclass

from starlette.websockets import WebSocket

from determined.streams.records import NORMAL, SUBPROTOCOL
from determined_master.auth.authentication import Authenticator, bearer
from determined_master.notifications import SESSIONS, Notifications
from determined_master.streams.broker import NobodyCame, Stream, StreamBroker
from determined_master.streams.relay import GOING_AWAY, close, relay

PATH = "/detent/streams/{stream_id}"
MAX_KEY_CHARACTERS = 64
SIGN_IN_SECONDS = 15.0
"""A sign-in may also expire."""
SIGNED_OUT = 4401


@dataclass(frozen=True)
class StreamEndpoint:
    """The endpoint of streams. A key in the subprotocols, where browsers can put it, and no cookie admits: a page of
    another origin has none."""

    broker: StreamBroker
    authenticator: Authenticator
    notifications: Notifications

    async def serve(self, socket: WebSocket) -> None:
        """One end of a stream, until the stream has ended."""
        protocols = socket.scope.get("subprotocols") or []
        key = protocols[1] if len(protocols) == 2 and protocols[0] == SUBPROTOCOL else ""  # name, key
        admitted = None
        if 0 < len(key) <= MAX_KEY_CHARACTERS:
            admitted = self.broker.admit(socket.path_params["stream_id"], key)
        if admitted is None or (admitted[1] == "agent" and not self._is_agent(socket)):
            await socket.close()  # answered with 403
            return
        stream, side = admitted
        await socket.accept(SUBPROTOCOL)
        try:
            if side == "agent":
                await self.broker.meet_client(stream, socket)
                await stream.over.wait()
                return
            agent = await self.broker.meet_agent(stream)
        except NobodyCame as error:
            await close(socket, GOING_AWAY, error.message)
            return
        try:
            await self._relay(stream, socket, agent)
        finally:
            self.broker.end(stream)

    async def _relay(self, stream: Stream, client: WebSocket, agent: WebSocket) -> None:
        """Carries messages until one side ends, or the sign-in of the client's user."""
        relaying = asyncio.create_task(relay(client, agent))
        try:
            async with self.notifications.subscribe(SESSIONS) as listener:
                while not relaying.done() and not self.notifications.closing:
                    changed = asyncio.create_task(listener.wait(SIGN_IN_SECONDS))
                    await asyncio.wait({relaying, changed}, return_when=asyncio.FIRST_COMPLETED)
                    changed.cancel()
                    if not relaying.done() and not await stream.is_signed_in():
                        await close(client, SIGNED_OUT, "you are no longer signed in")
                        await close(agent, NORMAL)
            await relaying
        finally:
            relaying.cancel()

    def _is_agent(self, socket: WebSocket) -> bool:
        return self.authenticator.is_agent(bearer(socket.headers.get("authorization")))
