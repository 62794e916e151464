"""Bounded threads for one kind of work, apart from all others: what hangs or takes long blocks only its own kind."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class Threads:
    """At most ``concurrency`` threads at a time, each started on demand. Waiting callers are served in order."""

    def __init__(self, purpose: str, concurrency: int) -> None:
        self._concurrency = concurrency
        # Each event loop has its own.
        self._limiter: RunVar[CapacityLimiter] = RunVar(f"threads for {purpose}")

    async def run(self, work: Callable[[*Ts], R], *arguments: *Ts) -> R:
        """Runs blocking work in one of the threads and returns its result."""
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(self._concurrency)
            self._limiter.set(limiter)
        return await to_thread.run_sync(partial(work, *arguments), limiter=limiter)


USER_FILES = Threads("files of users", 2)
"""For contexts: how long it takes to unpack one is decided by its sender."""
