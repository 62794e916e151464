"""Brings the two ends of a stream together: a client's connection and the one that an agent opens for it.

In memory: after a restart of the master, a client asks for a new stream into its session, which the agent has kept.
"""

import asyncio
import hmac
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from starlette.websockets import WebSocket, WebSocketDisconnect

from determined.errors import Conflict, MasterUnreachable, TooManyRequests
from determined.link.messages import Execution, OpenStream, SshAccess
from determined_master.agents.registry import Registry
from determined_master.streams.target import Target
from determined_master.streams.uses import Uses

MEETING_SECONDS = 15.0
"""Time for both ends to connect."""
MAX_STREAMS_PER_USER = 128
Side = Literal["client", "agent"]


class NobodyCame(MasterUnreachable):
    """The agent did not connect the stream in time."""


@dataclass
class Stream:
    """A stream until its end. Each key is valid once."""

    id: str
    user: str
    keys: dict[Side, str]
    task_id: str
    is_signed_in: Callable[[], Awaitable[bool]]
    """Returns False once the sign-in with which it was opened has ended."""
    is_use: bool = True
    """True if it counts as use of its task."""
    has_client: asyncio.Event = field(default_factory=asyncio.Event)
    agent: asyncio.Future[WebSocket] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    over: asyncio.Event = field(default_factory=asyncio.Event)


class StreamBroker:
    """The streams of this master. ``uses`` says which tasks they use.

    Example::

        stream, _ = await broker.open(target, "ada", is_signed_in=check, execution=Execution(argv=["nvidia-smi"]))
        # the client connects with stream.keys["client"], the agent with stream.keys["agent"]
    """

    def __init__(self, registry: Registry, uses: Uses) -> None:
        self.uses = uses
        self._registry = registry
        self._streams: dict[str, Stream] = {}
        self._users: Counter[str] = Counter()

    async def open(
        self,
        target: Target,
        user: str,
        *,
        is_signed_in: Callable[[], Awaitable[bool]],
        execution: Execution | None = None,
        port: int = 0,
        ssh: SshAccess | None = None,
        session_id: str = "",
        is_use: bool = True,
    ) -> tuple[Stream, str]:
        """Asks the target's agent for a stream; returns it and the id of its session.

        Args:
            target: the container.
            user: who opens it.
            is_signed_in: asked again while the stream is open, which ends with the sign-in.
            execution: a program to run, or None.
            port: a port of the task, without a program.
            ssh: keys of a stream that carries SSH, without both.
            session_id: a session to continue; empty for a new one.
            is_use: counts as use of the task from the start, and not only from ``note_use``.

        Raises Conflict if the agent is not connected or too old, and TooManyRequests.
        """
        link = self._registry.links.get(target.agent_id)
        if link is None:
            raise Conflict(f"agent {target.agent_id} is not connected; its tasks go on, and can be entered when it is")
        if not link.takes_streams:
            raise Conflict(f"agent {target.agent_id} has an earlier version, which knows no streams; upgrade it")
        if ssh is not None and not link.takes_ssh:
            raise Conflict(f"agent {target.agent_id} has an earlier version, which knows no SSH; upgrade it")
        if self._users[user] >= MAX_STREAMS_PER_USER:
            raise TooManyRequests(f"{user} has {MAX_STREAMS_PER_USER} open streams; close some of them")
        keys: dict[Side, str] = {"client": secrets.token_urlsafe(24), "agent": secrets.token_urlsafe(24)}
        stream = Stream(secrets.token_hex(16), user, keys, target.task_id, is_signed_in, is_use)
        message = OpenStream(
            stream_id=stream.id,
            key=keys["agent"],
            session_id=session_id or secrets.token_hex(16),
            is_resumed=bool(session_id),
            container_id=target.container_id,
            user=user,
            execution=execution,
            port=port,
            ssh=ssh,
        )
        self._streams[stream.id] = stream
        self._users[user] += 1
        if is_use:
            self.uses.begin(target.task_id)
        asyncio.get_running_loop().call_later(MEETING_SECONDS, self._expire, stream)
        try:
            await link.socket.send_text(message.model_dump_json())
        except (RuntimeError, WebSocketDisconnect) as error:
            self._forget(stream)
            raise Conflict(f"agent {target.agent_id} has just disconnected; try again") from error
        return stream, message.session_id

    def admit(self, stream_id: str, key: str) -> tuple[Stream, Side] | None:
        """Returns the stream and the side for which a key is valid, which it is once; None for any other."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return None
        for side, expected in stream.keys.items():
            if hmac.compare_digest(expected.encode(), key.encode()):
                del stream.keys[side]
                return stream, side
        return None

    async def meet_client(self, stream: Stream, socket: WebSocket) -> None:
        """Brings the agent's side; waits for the client's. Raises NobodyCame."""
        stream.agent.set_result(socket)
        await self._meet(stream)

    async def meet_agent(self, stream: Stream) -> WebSocket:
        """Brings the client's side; waits for the agent's, and returns its socket. Raises NobodyCame."""
        stream.keys.pop("client", None)
        stream.has_client.set()
        return await self._meet(stream)

    async def _meet(self, stream: Stream) -> WebSocket:
        try:
            async with asyncio.timeout(MEETING_SECONDS):
                await stream.has_client.wait()
                return await asyncio.shield(stream.agent)
        except TimeoutError:
            self.end(stream)
            raise NobodyCame("the agent did not connect the stream in time") from None

    def note_use(self, stream: Stream) -> None:
        """Notes that a stream is used by one who may enter the task; idempotent."""
        if not stream.is_use and stream.id in self._streams:
            stream.is_use = True
            self.uses.begin(stream.task_id)

    def end(self, stream: Stream) -> None:
        """Notes that a stream has ended; idempotent."""
        stream.over.set()
        self._forget(stream)

    def _expire(self, stream: Stream) -> None:
        if not (stream.has_client.is_set() and stream.agent.done()):
            self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        if self._streams.pop(stream.id, None) is not None:
            if stream.is_use:
                self.uses.end(stream.task_id)
            self._users[stream.user] -= 1
            if not self._users[stream.user]:
                del self._users[stream.user]
