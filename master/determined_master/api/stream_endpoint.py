"""The websocket of both ends of a stream, which their keys admit."""

from dataclasses import dataclass

from starlette.websockets import WebSocket

from determined.streams.records import SUBPROTOCOL
from determined_master.auth.authentication import Authenticator, bearer
from determined_master.streams.broker import NobodyCame, StreamBroker
from determined_master.streams.relay import GOING_AWAY, close, relay

PATH = "/detent/streams/{stream_id}"
MAX_KEY_CHARACTERS = 64


@dataclass(frozen=True)
class StreamEndpoint:
    """The endpoint of streams. A key in the subprotocols, where browsers can put it, and no cookie admits: a page of
    another origin has none."""

    broker: StreamBroker
    authenticator: Authenticator

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
            other = await self.broker.meet(stream, side, socket)
        except NobodyCame as error:
            await close(socket, GOING_AWAY, error.message)
            return
        if side == "agent":
            await stream.over.wait()
            return
        try:
            await relay(socket, other)
        finally:
            self.broker.end(stream)

    def _is_agent(self, socket: WebSocket) -> bool:
        return self.authenticator.is_agent(bearer(socket.headers.get("authorization")))
