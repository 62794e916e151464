"""Measures how long transactions hold the write lock of a master's database."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from determined_master.db.session import Database

MAX_HOLD_SECONDS = 0.25
"""Maximum time for which a transaction may hold the write lock, whatever is sent or stored."""

SWITCH_SECONDS = 0.0005
"""The value that the master sets for its process: with the default, a thread that reads many rows would delay the
others."""


@dataclass
class Holds:
    """Duration in seconds and task name of each hold.

    The duration is the smaller of wall-clock time, which grows on a busy machine, and the processor time of this
    process, which its other threads increase.
    """

    seconds: list[tuple[float, str]] = field(default_factory=list)

    @property
    def longest(self) -> float:
        return max(self.seconds, default=(0.0, ""))[0]

    def __str__(self) -> str:
        slowest = sorted(self.seconds, reverse=True)[:3]
        return f"{len(self.seconds)} transactions, slowest: " + ", ".join(f"{s:.3f} s {who}" for s, who in slowest)


@contextlib.contextmanager
def write_holds(database: Database) -> Iterator[Holds]:
    """Measures all holds of the lock inside the block, including those of the group-commit writer."""
    holds = Holds()
    lock = database.write_lock
    acquire, release = lock.acquire, lock.release
    start: tuple[float, float] | None = None

    async def measured_acquire() -> bool:
        nonlocal start
        await acquire()
        start = time.monotonic(), time.process_time()
        return True

    def measured_release() -> None:
        if start is not None:  # otherwise the lock was acquired before the block
            seconds = min(time.monotonic() - start[0], time.process_time() - start[1])
            task = asyncio.current_task()
            holds.seconds.append((seconds, task.get_name() if task else ""))
        release()

    vars(lock).update(acquire=measured_acquire, release=measured_release)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield holds
    finally:
        sys.setswitchinterval(usual)
        for name in ("acquire", "release"):
            vars(lock).pop(name)
