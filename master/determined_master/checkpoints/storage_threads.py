"""Threads that touch checkpoint storage, apart from all others: hanging storage blocks nothing else."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

R = TypeVar("R")
Ts = TypeVarTuple("Ts")
CONCURRENCY = 16
_limiter: RunVar[CapacityLimiter] = RunVar("threads that touch checkpoint storage")


async def in_thread(work: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Runs blocking work on checkpoint storage in one of at most ``CONCURRENCY`` threads."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(CONCURRENCY)
        _limiter.set(limiter)
    return await to_thread.run_sync(partial(work, *arguments), limiter=limiter)
