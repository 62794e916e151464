"""One session: a program or a connection, and the stream that joins it with a client."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from typing import Any

from determined.streams.records import Kind, StreamBroken, record_of
from determined.streams.windowed import Cut, Socket, WindowedStream
from determined_agent.streams.joined import join
from determined_agent.streams.program import NotEntered, Program

logger = logging.getLogger(__name__)

KEPT_SECONDS = 60.0
"""A session whose connection was cut goes on for this time, and ends if nobody continues it."""
KILLED_SECONDS = 2.0
"""Time in which the agent learns that a program was killed with its task."""


class Session:
    """Runs from ``start`` until its program has ended and the client knows, or nobody is connected any more."""

    def __init__(
        self,
        session_id: str,
        container_id: str,
        user: str,
        on_end: Callable[["Session"], None],
        kept_seconds: float = KEPT_SECONDS,
    ) -> None:
        self.id, self.container_id, self.user = session_id, container_id, user
        self._on_end = on_end
        self._kept_seconds = kept_seconds
        self._stream = WindowedStream()
        self._attached: asyncio.Task[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._ending = asyncio.Event()
        self._reason = ""
        self._running: asyncio.Task[None] | None = None

    def start(self, make_program: Callable[[], Any]) -> None:
        """Starts it. ``make_program`` returns a coroutine of the program."""
        self._running = asyncio.create_task(self._run(make_program), name=f"session {self.id}")
        self._detached()

    async def attach(self, socket: Socket) -> None:
        """Continues over a connection until that is cut or replaced. Raises Cut and StreamBroken."""
        if self._attached is not None:
            self._attached.cancel()
        if self._expiry is not None:
            self._expiry.cancel()
        attached = self._attached = asyncio.create_task(self._stream.attach(socket))
        try:
            await asyncio.wait({attached, *([self._running] if self._running else [])}, return_when="FIRST_COMPLETED")
            if attached.done() and not attached.cancelled():
                attached.result()
        except Cut as cut:
            if cut.is_final:
                self.end()
                # Nobody comes for the rest.
                await self._stream.close()
            raise
        except StreamBroken:
            self.end()
            raise
        finally:
            attached.cancel()
            if self._attached is attached:
                self._attached = None
                self._detached()

    def end(self, reason: str = "") -> None:
        """Ends the program. ``reason``: told to the client."""
        self._reason = self._reason or reason
        self._ending.set()

    async def closed(self, seconds: float | None = None) -> None:
        """Waits for the end. After ``seconds``, a client that does not take it is not waited for."""
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=seconds)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _detached(self) -> None:
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(self._kept_seconds, self.end)

    async def _run(self, make_program: Callable[[], Any]) -> None:
        try:
            await self._play(make_program)
        except Exception:
            logger.exception("a session in a task failed")
        finally:
            if self._expiry is not None:
                self._expiry.cancel()
            await self._stream.close()
            self._on_end(self)

    async def _play(self, make_program: Callable[[], Any]) -> None:
        try:
            program: Program = await make_program()
        except NotEntered as problem:
            await self._tell({"error": problem.message})
            return
        try:
            status = await join(program, self._stream.send, self._stream.receive, self._ending)
            if status in ({"signal": signal.SIGKILL}, {"code": 128 + signal.SIGKILL}):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(KILLED_SECONDS):
                        await self._ending.wait()
        except StreamBroken as problem:
            status = {"error": problem.message}
        except Cut:
            status = None
        finally:
            await program.close()
        await self._tell({"error": self._reason} if self._reason else status or {"error": "ended"})

    async def _tell(self, status: dict[str, Any]) -> None:
        """Sends the end, and waits until the client has it or is gone."""
        with contextlib.suppress(Cut, TimeoutError):
            async with asyncio.timeout(self._kept_seconds):
                await self._stream.send(record_of(Kind.STATUS, status))
                await self._stream.acknowledged()
