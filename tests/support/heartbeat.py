"""Measures how long the event loop of a test computes without a turn for others."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

INTERVAL_SECONDS = 0.005


@dataclass
class Heartbeat:
    """``longest_gap``: most seconds of processor time that the loop's thread took between two of its turns.

    Processor time, because a machine that is busy with other things makes every gap on the clock longer.
    """

    longest_gap: float = 0.0
    beats: int = 0

    async def beat(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            now = time.thread_time()
            self.longest_gap = max(self.longest_gap, now - last)
            self.beats += 1
            last = now


@contextlib.asynccontextmanager
async def heartbeat() -> AsyncIterator[Heartbeat]:
    """Beats on this loop until left."""
    created = Heartbeat()
    task = asyncio.create_task(created.beat())
    try:
        yield created
    finally:
        # A loop that was held until now has not beaten since.
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
