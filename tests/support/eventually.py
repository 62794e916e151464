"""Waiting for a condition with a deadline, so that no test sleeps for a fixed time."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(condition: Callable[[], T], *, within: float = 20.0) -> T:
    """The first true value of ``condition``. Fails the test after ``within`` seconds."""
    until = time.monotonic() + within
    while not (value := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"did not come true within {within} s")
        await asyncio.sleep(0.01)
    return value
