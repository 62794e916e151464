"""Health of the master's storages: free space of the data folder and of local checkpoint folders, failed writes."""

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from determined_launch.out_of_space import is_out_of_space
from determined_master.clock import Clock

logger = logging.getLogger(__name__)

PROBE_NAME = ".write-probe"
PROBE_BYTES = 64 << 10
PROBE_BELOW_BYTES = 16 << 20
"""With more free space no write is tried unless one has failed."""
FULL_BELOW_BYTES = 1 << 20
"""A checkpoint folder with less free space counts as full; no write is tried there."""

Status = Literal["up", "low", "full", "failing"]
"""``failing``: writes fail although there is space."""


@dataclass(frozen=True)
class StorageState:
    """Free space of one storage at its last check."""

    name: str
    path: Path
    status: Status
    free_bytes: int
    total_bytes: int


class StorageHealth:
    """Tracks whether the master can write, and since when it cannot. A failed write marks the data folder as full at
    once. ``probe`` then tries a small write and clears the mark when it succeeds."""

    def __init__(
        self,
        data: Path,
        roots: Sequence[Path],
        clock: Clock,
        low_bytes: int,
        explain: Callable[[BaseException], str] = str,
    ) -> None:
        """``explain`` says of an error of a damaged database which file it is, and what to do."""
        self._data = data
        self._roots = [root for root in roots if root != data]
        self._clock = clock
        self._low_bytes = low_bytes
        self.failing_since: datetime | None = None
        self.is_damaged = False
        """The database has answered that its file is damaged."""
        self._explain = explain
        self._failure: Status = "full"
        self._measured = self._measure()
        self._statuses = [state.status for state in self.states]

    @property
    def is_writable(self) -> bool:
        return self.failing_since is None

    @property
    def states(self) -> list[StorageState]:
        """Returns the data folder, then the checkpoint folders."""
        data, *roots = self._measured
        return [data if self.is_writable else replace(data, status=self._failure), *roots]

    def note_damage(self, error: BaseException) -> None:
        """Notes that the database is damaged. Only another database helps, so it stays so until the master ends. May be
        called in any thread."""
        if not self.is_damaged:
            self.is_damaged = True
            logger.critical("%s. Stop the master first", self._explain(error))

    def note_failure(self, text: str, is_full: bool = True) -> None:
        """Notes a failed write; ``is_full``: because the disk is full. May be called in any thread."""
        if is_full or self.failing_since is None:
            self._failure = "full" if is_full else "failing"
        if self.failing_since is None:
            self.failing_since = self._clock.now()
            logger.error("cannot write to the disk of %s: %s; trials wait until it can be written", self._data, text)

    @property
    def needs_probe(self) -> bool:
        """Returns True if the last write failed or little space is left."""
        return not self.is_writable or self._measured[0].free_bytes < PROBE_BELOW_BYTES

    async def probe(self) -> None:
        """Tries a small write, and notes whether the data folder can be written."""
        problem = await asyncio.to_thread(_probe, self._data)
        if problem is not None:
            self.note_failure(str(problem), is_out_of_space(problem))
        elif self.failing_since is not None:
            logger.warning("the disk of %s can be written again", self._data)
            self.failing_since = None

    async def measure(self) -> bool:
        """Measures the free space of all storages. Returns True if a status differs from the last measurement's."""
        self._measured = await asyncio.to_thread(self._measure)
        before, self._statuses = self._statuses, [state.status for state in self.states]
        return before != self._statuses

    def log_states(self) -> None:
        for state in self.states:
            log = logger.info if state.status == "up" else logger.warning
            log("storage %s: %s, %d of %d bytes free", state.path, state.status, state.free_bytes, state.total_bytes)

    def _measure(self) -> Sequence[StorageState]:
        states = [self._state("data", self._data)]
        for number, root in enumerate(self._roots, 1):
            with suppress(OSError):  # missing so far, or not local
                states.append(self._state(f"checkpoints-{number}", root))
        return states

    def _state(self, name: str, path: Path) -> StorageState:
        usage = shutil.disk_usage(path)
        status: Status = "low" if usage.free < self._low_bytes else "up"
        if path != self._data and usage.free < FULL_BELOW_BYTES:
            status = "full"
        return StorageState(name, path, status, usage.free, usage.total)


def _probe(folder: Path) -> OSError | None:
    """Writes, syncs and removes a small file. Returns the error, or None. Blocking."""
    path = folder / PROBE_NAME
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return None
