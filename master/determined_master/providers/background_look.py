"""A look that takes time runs beside whoever wants to know; they get what was seen last."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
logger = logging.getLogger(__name__)


class BackgroundLook(Generic[T]):
    def __init__(self, work: Callable[[], Awaitable[T]], now: Callable[[], float] = time.monotonic) -> None:
        """``work`` looks; what it raises is logged, and the last answer stays."""
        self._work = work
        self._now = now
        self._answer: T | None = None
        self._task: asyncio.Task[None] | None = None
        self._began_at: float | None = None
        self._failure = ""

    def latest(self, interval: float) -> T | None:
        """Returns the last answer, None before the first one. Begins to look if the last look began ``interval``
        seconds ago or earlier, and has ended."""
        is_running = self._task is not None and not self._task.done()
        if not is_running and (self._began_at is None or self._now() - self._began_at >= interval):
            self._began_at = self._now()
            self._task = asyncio.create_task(self._look())
        return self._answer

    async def _look(self) -> None:
        try:
            self._answer = await self._work()
        except Exception as error:  # whatever an admin's file or command does
            if str(error) != self._failure:
                self._failure = str(error)
                logger.warning("%s", self._failure or type(error).__name__)
        else:
            self._failure = ""
