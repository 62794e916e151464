"""Looks at Slurm's queue beside everything else: one ``squeue`` for all pools at a time, whose answer is kept."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from determined_master.clock import SystemClock
from determined_master.providers.slurm.client import NoAnswer, SlurmClient, SlurmError
from determined_master.providers.slurm.queue import SlurmJob, newest_of, parse

logger = logging.getLogger(__name__)

BUSY_SECONDS, IDLE_SECONDS = 5.0, 30.0
"""Time between two looks while a pilot exists, and otherwise."""
TOGETHER_SECONDS = 0.2
"""Time for which a look waits for others who want one: submissions and releases come in groups."""


@dataclass(frozen=True)
class Look:
    """One good answer of Slurm. ``began``: by the monotonic clock; ``at``: by the master's."""

    jobs: dict[str, SlurmJob] = field(default_factory=dict)
    """By comment."""
    began: float = 0.0
    at: datetime = datetime.min


class Looks:
    def __init__(
        self,
        client: SlurmClient,
        prefix: Callable[[], str],
        on_look: Callable[[Look], Awaitable[None]],
        is_busy: Callable[[], bool],
        *,
        busy_seconds: float = BUSY_SECONDS,
        now: Callable[[], datetime] = SystemClock().now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``prefix`` returns what the comments of our jobs begin with; ``on_look`` gets each good answer."""
        self._client = client
        self._prefix = prefix
        self._on_look = on_look
        self._is_busy = is_busy
        self._busy_seconds = busy_seconds
        self._now = now
        self._monotonic = monotonic
        self._waiting: list[asyncio.Future[Look]] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_away = False

    def begin(self) -> None:
        """Starts looking, if that is not done yet."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="looks at Slurm's queue")

    async def fresh(self) -> Look:
        """Returns an answer to a question that is asked after this call. Raises SlurmError."""
        self.begin()
        waiting: asyncio.Future[Look] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._wake.set()
        return await waiting

    async def close(self) -> None:
        """Stops looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            if self._waiting:
                await asyncio.sleep(min(TOGETHER_SECONDS, self._busy_seconds))
            waiting, self._waiting = self._waiting, []
            self._wake.clear()
            try:
                _answer(waiting, await self._look())
            except SlurmError as error:
                self._complain(error)
                _answer(waiting, error)
            except Exception:
                logger.exception("a look at Slurm's queue failed")
                _answer(waiting, NoAnswer("the master cannot read Slurm's queue; its log says why"))
            except asyncio.CancelledError:
                _answer(waiting, NoAnswer("the master stops"))
                raise
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._busy_seconds if self._is_busy() else IDLE_SECONDS):
                    await self._wake.wait()

    async def _look(self) -> Look:
        began, at = self._monotonic(), self._now()
        jobs = parse(await self._client.queue(), self._prefix())
        look = Look(newest_of(jobs), began, at)
        if self._is_away:
            self._is_away = False
            logger.warning("Slurm answers again")
        await self._on_look(look)
        return look

    def _complain(self, error: SlurmError) -> None:
        # Once per outage.
        if not self._is_away:
            self._is_away = True
            logger.warning("cannot look at Slurm's queue, so nothing is known of its jobs for now: %s", error)


def _answer(waiting: Iterable[asyncio.Future[Look]], answer: Look | SlurmError) -> None:
    for future in waiting:
        if future.done():
            continue
        if isinstance(answer, Look):
            future.set_result(answer)
        else:
            future.set_exception(answer)
