"""Measures how long the event loop of a test computes without switching to another task."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

INTERVAL_SECONDS = 0.005


@dataclass
class Heartbeat:
    """Measures gaps of the event loop. ``longest_gap``: maximum processor time in seconds between two beats.

    Processor time does not grow on a machine that is busy with other processes.
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
    """Yields a heartbeat that runs on this loop inside the block."""
    measured = Heartbeat()
    task = asyncio.create_task(measured.beat())
    try:
        yield measured
    finally:
        # Lets a loop that was blocked until now beat once more.
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
