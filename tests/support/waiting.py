"""Waits for a condition with a deadline, so that no test sleeps for a fixed time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")

SLOWEST = 4  # how many times slower a machine may be than the one for which a limit was chosen
POLL_SECONDS = 0.01
MAX_POLL_SECONDS = 0.3


async def eventually(condition: Callable[[], T | Awaitable[T]], *, within: float = 20.0) -> T:
    """Returns the first true value of ``condition``, a function or a coroutine function.

    Fails the test after four times ``within`` seconds.
    """
    deadline = time.monotonic() + SLOWEST * within
    while True:
        answer = condition()
        value = cast(T, await answer if inspect.isawaitable(answer) else answer)
        if value:
            return value
        assert time.monotonic() < deadline, f"did not come true within {SLOWEST * within} s"
        await asyncio.sleep(POLL_SECONDS)


def wait_until(condition: Callable[[], T | None], *, within: float = 30.0, what: str | Callable[[], str] = "") -> T:
    """Returns the first true value of ``condition``, for tests and support code without an event loop.

    Fails the test after four times ``within`` seconds. ``what``: a description of the condition, or a function that
    returns one.
    """
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited >= SLOWEST * within:
            description = what if isinstance(what, str) else what()
            raise AssertionError(f"{description or 'it'} did not come true within {waited:.0f} s")
        # A long wait polls less often: frequent polling would slow down the awaited work.
        time.sleep(min(POLL_SECONDS + waited / 10, MAX_POLL_SECONDS))
