"""Runs blocking work on large inputs outside the event loop: in a thread, or in a process of its own."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TypeVar, TypeVarTuple

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

MAX_INLINE_CHARACTERS = 8 * 1024
"""Texts up to this size are read on the event loop: that takes less than 30 ms."""
MAX_THREAD_CHARACTERS = 64 * 1024
"""Texts up to this size are read in a thread: a process takes longer to start."""
NICE = 10
"""Added to the niceness of the processes: on a machine with few cores requests go before them."""


class BackgroundThread:
    """A thread for computations that may take seconds: one at a time, in the order of the calls. It waits for nothing,
    so it holds up only its own callers."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Drops the calls that have not begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class Offloader:
    """A bounded number of processes, each started on demand for one call. Waiting callers are served in order."""

    def __init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)

    async def run(self, work: Callable[[*Ts], R], *arguments: *Ts) -> R:
        """Calls ``work`` in a process that ends afterwards, so that its memory does not stay with the master.

        ``work`` is a function of a module; arguments, result and exceptions are pickled.
        """
        loop = asyncio.get_running_loop()
        async with self._slots:
            pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=os.nice, initargs=(NICE,))
            try:
                return await loop.run_in_executor(pool, partial(work, *arguments))
            finally:
                # Waiting for the process to end would hold every request for a third of a second.
                pool.shutdown(wait=False)

    async def run_sized(self, characters: int, work: Callable[[*Ts], R], *arguments: *Ts) -> R:
        """Calls ``work`` at once, in a thread or in a process, by the size of the text that it reads."""
        if characters <= MAX_INLINE_CHARACTERS:
            return work(*arguments)
        if characters <= MAX_THREAD_CHARACTERS:
            return await asyncio.to_thread(work, *arguments)
        return await self.run(work, *arguments)
