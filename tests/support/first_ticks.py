"""First ticks of a master's loops, one after another.

At once they would open as many connections, each with a thread of its own: a third of what the start of a test's master
computes. A tick must not wait for the first tick of another loop.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from determined_master.loops.background import Loop, work_loops
from determined_master.server import lifespan
from determined_master.wiring.services import Services

Tick = Callable[[], Coroutine[Any, Any, float | None]]


@contextmanager
def in_turn() -> Iterator[None]:
    """Within it, masters start whose loops tick for the first time one after another."""

    def loops(services: Services) -> list[Loop]:
        turn = asyncio.Lock()
        return [replace(loop, tick=_first_in_turn(loop.tick, turn)) for loop in work_loops(services)]

    with patch.object(lifespan, "work_loops", loops):
        yield


def _first_in_turn(tick: Tick, turn: asyncio.Lock) -> Tick:
    async def first() -> float | None:
        async with turn:
            return await tick()

    ticks = iter([first])

    async def ticked() -> float | None:
        return await next(ticks, tick)()

    return ticked
