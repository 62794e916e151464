"""One session: a program or a connection, and the stream that joins it with a client."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from typing import Any

from determined.streams.records import Kind, Record, StreamBroken, record_of
from determined.streams.windowed import Cut, Socket, WindowedStream
from determined_agent.streams.program import NotEntered, Program

logger = logging.getLogger(__name__)

KEPT_SECONDS = 60.0
"""A session whose connection was cut goes on for this time, and ends if nobody continues it."""
KILLED_SECONDS = 2.0
"""Time in which the agent learns that a program was killed with its task."""
DRAIN_SECONDS = 2.0
"""Time for the last output after the end of a program: what it left may hold its output open."""


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
            status = await self._join(program)
        finally:
            await program.close()
        await self._tell({"error": self._reason} if self._reason else status)

    async def _join(self, program: Program) -> dict[str, Any]:
        """Passes input and output on until the program has ended, or is to end. Returns its status."""
        output = asyncio.create_task(self._send_output(program))
        input_ = asyncio.create_task(self._take_input(program))
        over = asyncio.create_task(program.wait())
        ending = asyncio.create_task(self._ending.wait())
        tasks = (output, input_, over, ending)
        try:
            await asyncio.wait({over, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not over.done():
                return {"error": "ended"}
            # As long as the client takes output: only silence of what the program left is not waited for.
            while not output.done() and not ending.done():
                before = self._sent_output
                await asyncio.wait({output, ending}, timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if self._sent_output == before and not self._is_sending:
                    break
            status = over.result()
            if status in ({"signal": signal.SIGKILL}, {"code": 128 + signal.SIGKILL}):
                await asyncio.wait({ending}, timeout=KILLED_SECONDS)
            return status
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    _sent_output = 0
    _is_sending = False

    async def _send_output(self, program: Program) -> None:
        while (record := await program.read()) is not None:
            self._is_sending = True
            await self._stream.send(record)
            self._is_sending = False
            self._sent_output += 1
        await self._stream.send(Record(Kind.END))

    async def _take_input(self, program: Program) -> None:
        try:
            while True:
                record = await self._stream.receive()
                await _pass_on(record, program)
        except StreamBroken as problem:
            self.end(problem.message)

    async def _tell(self, status: dict[str, Any]) -> None:
        """Sends the end, and waits until the client has it or is gone."""
        with contextlib.suppress(Cut, TimeoutError):
            async with asyncio.timeout(self._kept_seconds):
                await self._stream.send(record_of(Kind.STATUS, status))
                await self._stream.acknowledged()


async def _pass_on(record: Record, program: Program) -> None:
    """Applies one record of a client. Raises StreamBroken."""
    match record.kind:
        case Kind.INPUT:
            await program.write(record.content)
        case Kind.END:
            await program.end_input()
        case Kind.RESIZE:
            rows, columns = _numbers(record, "rows", "columns")
            await program.resize(rows, columns)
        case Kind.SIGNAL:
            (number,) = _numbers(record, "signal")
            await program.signal(number)
        case _:
            raise StreamBroken(f"a client sends no record {record.kind.name}")


def _numbers(record: Record, *names: str) -> list[int]:
    numbers = [record.value.get(name) for name in names]
    if not all(isinstance(number, int) and 0 < number <= 10_000 for number in numbers):  # terminal cells
        raise StreamBroken(f"a record {record.kind.name} needs {' and '.join(names)} between 1 and 10000")
    return [int(number) for number in numbers if number is not None]
