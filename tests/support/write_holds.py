"""Measures how long transactions hold the write lock of a master's database."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from determined_master.db.session import Database

MAX_HOLD_SECONDS = 0.25
"""No transaction holds the write lock for longer, however much somebody sends or stores."""

SWITCH_SECONDS = 0.0005
"""As the master sets it for its process: a thread that reads very many rows would hold up the others."""


@dataclass
class Holds:
    """Seconds that each hold took, and who held.

    A hold takes the smaller of its time by the clock, which other programs make longer on a busy machine, and the
    processor time of this process, which its other threads make longer.
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
    """Measures all holds of the lock, also those of the group-commit writer, until left."""
    found = Holds()
    lock = database.write_lock
    acquire, release = lock.acquire, lock.release
    start: tuple[float, float] | None = None

    async def measured_acquire() -> bool:
        nonlocal start
        await acquire()
        start = time.monotonic(), time.process_time()
        return True

    def measured_release() -> None:
        if start is not None:  # else it was acquired before
            seconds = min(time.monotonic() - start[0], time.process_time() - start[1])
            task = asyncio.current_task()
            found.seconds.append((seconds, task.get_name() if task else ""))
        release()

    vars(lock).update(acquire=measured_acquire, release=measured_release)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield found
    finally:
        sys.setswitchinterval(usual)
        for name in ("acquire", "release"):
            vars(lock).pop(name)
