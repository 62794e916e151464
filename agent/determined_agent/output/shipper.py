"""Sends container output to the master by offset until it is acknowledged."""

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Callable, Iterator
from urllib.parse import quote

from pydantic import ValidationError

from determined.link.messages import OutputAck, OutputBatch
from determined.link.run_folder import RunFolder
from determined_agent.master_link.http import HttpClient, HttpError
from determined_agent.output import log_segments
from determined_agent.output.line_parser import lines_of
from determined_agent.output.log_segments import AGENT, Chunk
from determined_launch.regular_files import read_regular, write_regular

logger = logging.getLogger(__name__)

_FIRST_WAIT, _LAST_WAIT = 0.1, 2.0
_GONE = (404, 410)
POLL_SECONDS = 1.0
AGENT_LINES_SECONDS = 0.25
"""Longest time that the agent's lines before a task wait for the task's first line, with which they are sent."""
FIRST_LINES_SECONDS = 0.1
"""Longest time that the task's first line waits for those that follow it."""
MAX_LINES = 1000
"""Number of lines of a batch."""
MAX_LAST_LINES, MAX_LAST_BYTES = 8, 4096
"""So much output goes with the report of the container's end: a message less for each short task."""
ANSWER_SECONDS = 1.0
"""Longest time to wait for the master's answer to it."""
MAX_UNREADABLE = 30
"""Number of retries for unreadable output after the container's end."""


class _Forgotten(Exception):
    """Raised if the master does not know the container."""


class OutputShipper:
    """Ships one container's output. Sleeps until the shim rings; retries for ever while the master does not answer."""

    def __init__(
        self,
        folder: RunFolder,
        client: HttpClient,
        *,
        agent_id: str,
        allocation_id: str,
        task_id: str,
        on_done: Callable[[], None],
        takes_last_output: Callable[[], bool] = lambda: False,
        mask: Callable[[str], str] = str,
    ) -> None:
        """Creates the shipper of the run folder ``folder``. ``on_done`` is called when all output is acknowledged.
        ``takes_last_output``: whether the master takes output with the report of the container's end. ``mask``:
        replaces in a line what others must not read."""
        self._folder = folder
        self._client = client
        self._path = f"/detent/agents/{quote(agent_id, safe='')}/output"
        self._names = {"container_id": folder.path.name, "allocation_id": allocation_id, "task_id": task_id}
        self._on_done = on_done
        self._takes_last_output = takes_last_output
        self._mask = mask
        self._rung = asyncio.Event()
        self._is_last = False
        self._is_idle = True
        """True while nothing is being sent."""
        self._offer: OutputBatch | None = None
        self._answer: asyncio.Future[int] | None = None
        self._end_of_offer: int | None = None
        self.is_done = False
        self._position = _read_position(folder)

    def wake(self) -> None:
        """Wakes the shipper because there may be new output."""
        self._rung.set()

    async def finish(self, *, with_report: bool = False) -> None:
        """Declares that no output will be added. ``with_report``: the container's end is reported next, and may take
        the last output with it."""
        rest = None
        if with_report and self._is_idle and self._takes_last_output():
            with contextlib.suppress(Exception):  # ``run`` reads it again, and reports the error
                rest = await asyncio.to_thread(self._rest)
        if rest is not None and self._is_idle and rest.start == self._position:
            self._offer = rest
            self._answer = asyncio.get_running_loop().create_future()
        self._is_last = True
        self._rung.set()

    def take_offer(self) -> OutputBatch | None:
        """Returns, once, the output to send with the report of the end."""
        offer, self._offer = self._offer, None
        if offer is not None:
            self._end_of_offer = offer.end
        return offer

    def answered(self, committed: int) -> bool:
        """Handles the master's answer to it: the offset up to which the output is stored. Returns True if that is all
        of it: then the master knows that it was the last."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(committed)
        return committed == self._end_of_offer

    async def run(self) -> None:
        """Ships until all output is acknowledged after :meth:`finish`."""
        with self._listening() as has_bell:
            await self._wait_for_task()
            await self._ship_all(poll=None if has_bell else POLL_SECONDS)
        self.is_done = True
        self._on_done()

    @contextlib.contextmanager
    def _listening(self) -> Iterator[bool]:
        """Listens to the shim's fifo; returns False if a task has replaced it by something else."""
        loop = asyncio.get_running_loop()
        try:
            bell = os.open(self._folder.wake, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as problem:
            logger.warning(
                "file notifications are not available; checking for new output once a second: %s",
                problem,
                extra=self._names,
            )
            yield False
            return
        is_fifo = stat.S_ISFIFO(os.fstat(bell).st_mode)
        try:
            if is_fifo:
                loop.add_reader(bell, self._hear, bell)
            yield is_fifo
        finally:
            loop.remove_reader(bell)
            os.close(bell)

    def _hear(self, bell: int) -> None:
        try:
            os.read(bell, 65536)
        except BlockingIOError:
            return
        self._rung.set()

    async def _wait_for_task(self) -> None:
        """Waits for output of the task, because a batch costs the master more than its lines."""
        with contextlib.suppress(Exception):  # a timeout, or unreadable output, which ``_ship_all`` reports
            async with asyncio.timeout(AGENT_LINES_SECONDS) as limit:
                has_begun = False
                while not self._is_last:
                    self._rung.clear()
                    if not has_begun:
                        chunk = await asyncio.to_thread(self._read)
                        has_begun = any(frame.stream != AGENT for frame in chunk.frames)
                        if has_begun:
                            limit.reschedule(asyncio.get_running_loop().time() + FIRST_LINES_SECONDS)
                    await self._rung.wait()

    async def _ship_all(self, poll: float | None) -> None:
        wait, unreadable, is_kept = _FIRST_WAIT, 0, False
        while True:
            self._rung.clear()
            is_last = self._is_last
            try:
                if self._answer is not None:
                    await self._wait_for_answer(self._answer)
                    self._answer = None
                self._is_idle = False
                moved = await self._ship_some()
            except _Forgotten:
                if is_last:
                    logger.warning("the master does not know a container; its output is dropped", extra=self._names)
                    return
                moved = None
            except (HttpError, ValidationError) as problem:
                level = logging.DEBUG if is_kept else logging.WARNING  # once per outage
                logger.log(level, "cannot send output; it is kept and sent later: %s", problem, extra=self._names)
                moved, is_kept = None, True
            except Exception as problem:
                moved = None
                unreadable += 1
                if unreadable == 1:
                    logger.exception("cannot read output; trying again", extra=self._names)
                if is_last and unreadable >= MAX_UNREADABLE:
                    logger.error("cannot read output; it is dropped: %s", problem, extra=self._names)
                    return
            if moved is None:
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LAST_WAIT)
                continue
            wait, unreadable, is_kept = _FIRST_WAIT, 0, False
            if not moved:
                if is_last:
                    return
                self._is_idle = True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(poll):
                        await self._rung.wait()

    async def _wait_for_answer(self, answer: "asyncio.Future[int]") -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._move(await answer)

    async def _ship_some(self) -> bool:
        """Ships one batch; returns False if there is none."""
        chunk = await asyncio.to_thread(self._read)
        if chunk.end == self._position:
            return False
        batch = self._batch(chunk)
        answer = await self._client.request("POST", self._path, batch.model_dump_json().encode())
        if answer.status in _GONE:
            raise _Forgotten
        if answer.status != 200:
            raise HttpError(f"the master answered {answer.status}")
        await self._move(OutputAck.model_validate_json(answer.body).committed)
        return True

    def _read(self, lines: int = MAX_LINES) -> Chunk:
        """Returns the next lines that are not acknowledged. Blocking."""
        folder = self._folder
        return log_segments.read(folder.output, self._position, lines=lines, owner=folder.owner)

    def _rest(self) -> OutputBatch | None:
        """Returns the output that is not acknowledged; None if there is none, or too much for a report. Blocking."""
        chunk = self._read(MAX_LAST_LINES + 1)
        is_all = 0 < chunk.end - chunk.start <= MAX_LAST_BYTES and len(chunk.frames) <= MAX_LAST_LINES
        # One read stays in one segment.
        is_all = is_all and log_segments.read(self._folder.output, chunk.end, lines=1).end == chunk.end
        return self._batch(chunk) if is_all else None

    def _batch(self, chunk: Chunk) -> OutputBatch:
        return OutputBatch(**self._names, start=chunk.start, end=chunk.end, lines=lines_of(chunk, self._mask))

    async def _move(self, committed: int) -> None:
        self._position = committed
        await asyncio.to_thread(self._forget, committed)

    def _forget(self, committed: int) -> None:
        """Removes what is acknowledged. Blocking."""
        log_segments.drop(self._folder.output, committed)
        with contextlib.suppress(OSError):  # a hint only
            write_regular(self._folder.path, self._folder.acknowledged.name, str(committed).encode(), owner=None)


def _read_position(folder: RunFolder) -> int:
    try:
        return int(read_regular(folder.acknowledged, 64))
    except (OSError, ValueError):
        return 0
