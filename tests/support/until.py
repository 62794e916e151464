"""Waiting for what an async question answers, with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(question: Callable[[], Awaitable[T | None]], *, within: float = 20.0) -> T:
    """The first answer that is true. Fails the test after ``within`` seconds."""
    deadline = time.monotonic() + within
    while True:
        answer = await question()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"did not come true within {within} s"
        await asyncio.sleep(0.01)
