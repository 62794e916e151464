"""All sessions of this agent: opens them on request of the master, and dials a connection for each."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from determined.client.certificates import Trust
from determined.link.messages import OpenStream, SshAccess
from determined.link.run_folder import RunFolder
from determined.streams.link_socket import LinkSocket, address_of
from determined.streams.records import MAX_RECORD_BYTES, NORMAL, SUBPROTOCOL, StreamBroken
from determined.streams.windowed import Cut
from determined_agent.master_link.http import tls
from determined_agent.streams.program import NotEntered, Program, TaskEntry
from determined_agent.streams.session import KEPT_SECONDS, Session

logger = logging.getLogger(__name__)

MAX_SESSIONS = 256
MAX_SESSIONS_OF_CONTAINER = 64
NO_SESSION = 4404
"""Close code: the session has ended, or never was."""
REFUSED = 4429
BROKEN = 4400
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 1.0
"""Time for clients to learn that the agent ends."""


@dataclass(frozen=True)
class MasterAddress:
    """Where and how this agent reaches its master."""

    url: str
    token: str
    trust: Trust

    @property
    def tls(self) -> dict[str, Any]:
        """Returns the arguments that a websocket needs for TLS; none without it."""
        if not self.url.startswith("https:"):
            return {}
        return {"ssl": tls(self.trust), "server_hostname": self.trust.name or urlsplit(self.url).hostname}


class Sessions:
    """Opens and keeps sessions.

    Example::

        sessions = Sessions(MasterAddress("http://127.0.0.1:8080", token, Trust()), entry, folder_of)
        sessions.open(message)
    """

    def __init__(
        self,
        master: MasterAddress,
        entry: TaskEntry,
        folder_of: Callable[[str], RunFolder | None],
        kept_seconds: float = KEPT_SECONDS,
    ) -> None:
        """``folder_of`` returns the run folder of a container that runs, None for any other."""
        self._master = master
        self._entry = entry
        self._folder_of = folder_of
        self._kept_seconds = kept_seconds
        self._sessions: dict[str, Session] = {}
        self._connections: set[asyncio.Task[None]] = set()

    def open(self, message: OpenStream) -> None:
        """Connects a stream, and opens its session unless it continues one."""
        session: Session | None = None
        code, reason = NORMAL, ""
        if message.is_resumed:
            session = self._sessions.get(message.session_id)
            if session is None or (session.container_id, session.user) != (message.container_id, message.user):
                session, code, reason = None, NO_SESSION, "the session has ended"
        elif reason := self._refusal(message.container_id):
            code = REFUSED
        else:
            session = self._begin(message)
        connection = asyncio.create_task(self._connect(message, session, code, reason))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    def end_left(self) -> None:
        """Ends the sessions in containers that have ended."""
        for session in list(self._sessions.values()):
            if self._folder_of(session.container_id) is None:
                session.end("the task has ended")

    async def close(self) -> None:
        """Ends all sessions."""
        sessions = list(self._sessions.values())
        for session in sessions:
            session.end("the agent was stopped")
        await asyncio.gather(*(each.closed(CLOSE_SECONDS) for each in sessions), return_exceptions=True)
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _refusal(self, container_id: str) -> str:
        mine = sum(each.container_id == container_id for each in self._sessions.values())
        if mine >= MAX_SESSIONS_OF_CONTAINER or len(self._sessions) >= MAX_SESSIONS:
            return f"too many sessions: at most {MAX_SESSIONS_OF_CONTAINER} in a task, {MAX_SESSIONS} on an agent"
        return ""

    def _begin(self, message: OpenStream) -> Session:
        session = Session(
            message.session_id, message.container_id, message.user, self._forget, kept_seconds=self._kept_seconds
        )
        self._sessions[session.id] = session
        session.start(lambda: self._program(message))
        return session

    async def _program(self, message: OpenStream) -> Program:
        folder = self._folder_of(message.container_id)
        if folder is None:
            raise NotEntered("the task has ended")
        if message.ssh is not None:
            serve_ssh = await asyncio.to_thread(_ssh_server)
            return await serve_ssh(self._entry, folder, message.ssh)
        if message.execution is not None:
            return await self._entry.execute(folder, message.execution)
        return await self._entry.connect(folder, message.port)

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.id, None)

    async def _connect(self, message: OpenStream, session: Session | None, code: int, reason: str) -> None:
        try:
            async with connect(
                address_of(self._master.url, message.stream_id),
                additional_headers={"Authorization": f"Bearer {self._master.token}"},
                subprotocols=[SUBPROTOCOL, message.key],  # type: ignore[list-item]  # plain text
                open_timeout=CONNECT_SECONDS,
                close_timeout=1,
                max_size=MAX_RECORD_BYTES,
                compression=None,
                proxy=None,
                **self._master.tls,
            ) as link:
                if session is not None:
                    code, reason = await _serve(session, link)
                await link.close(code, reason)
        except (OSError, WebSocketException, TimeoutError) as problem:
            # The session waits for another connection, which the client asks for.
            logger.warning("a stream could not be connected: %s", problem)


async def _serve(session: Session, link: ClientConnection) -> tuple[int, str]:
    """Returns the code and the reason with which the connection is to be closed."""
    try:
        await session.attach(LinkSocket(link))
    except StreamBroken as problem:
        return BROKEN, problem.message
    except Cut as cut:
        return NORMAL, str(cut)
    return NORMAL, ""


def _ssh_server() -> Callable[[TaskEntry, RunFolder, SshAccess], Awaitable[Program]]:
    """Returns the function that serves SSH, whose packages are optional and slow to import. Raises NotEntered."""
    try:
        from determined_agent.streams.ssh.connection import serve_ssh
    except ImportError as problem:
        raise NotEntered(
            f"the agent has no SSH server ({problem}); its admin adds one with: pip install 'detent-cluster[ssh]'"
        ) from problem
    return serve_ssh
