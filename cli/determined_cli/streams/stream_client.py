"""The client's side of a session in a task, which it continues over a new connection when one is cut."""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake

from determined.client import certificates
from determined.client.session import Session
from determined.errors import ApiError, DeterminedError, MasterUnreachable
from determined.streams.link_socket import LinkSocket, address_of
from determined.streams.records import MAX_RECORD_BYTES, SUBPROTOCOL
from determined.streams.windowed import Cut, WindowedStream

PATIENCE_SECONDS = 60.0
"""As long as an agent keeps a session whose connection was cut."""
_FIRST_WAIT, _LAST_WAIT = 0.1, 2.0
CONNECT_SECONDS = 15.0


class StreamEnded(DeterminedError):
    """The session in the task has ended."""


class StreamClient:
    """One session.

    Example::

        client = StreamClient(session, task_id, {"argv": ["nvidia-smi"]})
        running = asyncio.create_task(client.run())
        record = await client.stream.receive()
    """

    def __init__(
        self,
        session: Session,
        task_id: str,
        body: dict[str, Any],
        on_cut: Callable[[str], None] = lambda _why: None,
        on_answer: Callable[[dict[str, Any]], None] = lambda _answer: None,
    ) -> None:
        """Args: ``body``: what is opened, as the master takes it; ``on_cut``: called when a connection was lost;
        ``on_answer``: called with the master's answer before each connection."""
        self.stream = WindowedStream()
        self._session = session
        self._path = f"/detent/tasks/{task_id}/streams"
        self._body = body
        self._on_cut = on_cut
        self._on_answer = on_answer
        self._session_id = ""

    async def run(self) -> None:
        """Connects until the session has ended; cancelled, it ends the session.

        Raises DeterminedError if the session cannot be opened or continued.
        """
        lost_at: float | None = None
        wait = _FIRST_WAIT
        try:
            while True:
                try:
                    if await self._connect():
                        return
                    lost_at, wait = time.monotonic(), _FIRST_WAIT
                    self._on_cut("the connection was lost; connecting again")
                except (MasterUnreachable, OSError, InvalidHandshake, TimeoutError) as problem:
                    if lost_at is None or time.monotonic() - lost_at > PATIENCE_SECONDS:
                        raise _unreachable(problem) from problem
                except ApiError as problem:
                    # After a restart of the master its agents are not connected at once.
                    is_early = problem.status == 409 and lost_at is not None  # conflict
                    if not is_early or time.monotonic() - (lost_at or 0) > PATIENCE_SECONDS:
                        raise
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LAST_WAIT)
        finally:
            await self.stream.close()

    async def _connect(self) -> bool:
        """Uses one connection. Returns True if the session has ended, False if the connection was cut."""
        body = {**self._body, "sessionId": self._session_id}
        answer = await asyncio.to_thread(self._session.post, self._path, body)
        self._session_id = str(answer["sessionId"])
        self._on_answer(answer)
        async with connect(
            address_of(self._session.master, str(answer["streamId"])),
            subprotocols=[SUBPROTOCOL, str(answer["key"])],  # type: ignore[list-item]  # plain text
            open_timeout=CONNECT_SECONDS,
            close_timeout=1,
            max_size=MAX_RECORD_BYTES,
            compression=None,
            proxy=None,
            **_security(self._session.master),
        ) as link:
            try:
                await self.stream.attach(LinkSocket(link))
            except Cut as cut:
                if cut.is_final and str(cut):
                    raise StreamEnded(str(cut)) from cut
                return cut.is_final
        return True


def _security(master: str) -> dict[str, Any]:
    """Returns what a websocket needs for TLS; nothing without it."""
    if not master.startswith("https:"):
        return {}
    trust = certificates.trust_of(master)
    return {"ssl": certificates.context(trust), "server_hostname": trust.name or urlsplit(master).hostname}


def _unreachable(problem: Exception) -> Exception:
    if isinstance(problem, DeterminedError):
        return problem
    return MasterUnreachable(f"cannot connect the stream: {problem or type(problem).__name__}")
