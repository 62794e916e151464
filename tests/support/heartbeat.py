"""Measures how long the event loop of a test is held."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

INTERVAL_SECONDS = 0.005


@dataclass
class Heartbeat:
    """``longest_gap`` is the longest time in seconds between two turns of the loop, less the interval."""

    longest_gap: float = 0.0
    beats: int = 0

    async def beat(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            now = loop.time()
            self.longest_gap = max(self.longest_gap, now - last - INTERVAL_SECONDS)
            self.beats += 1
            last = now


@contextlib.asynccontextmanager
async def heartbeat() -> AsyncIterator[Heartbeat]:
    """Beats on this loop until left."""
    made = Heartbeat()
    task = asyncio.create_task(made.beat())
    try:
        yield made
    finally:
        # A loop that was held until now has not beaten since.
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
