"""Keeps the experiment index up to date in small transactions, less often where updates are expensive."""

import asyncio
import logging
import time

from sqlalchemy.exc import OperationalError

from determined.link.isolation import Isolation
from determined_master.db.session import Database
from determined_master.experiment_index import index_repository, index_upkeep

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.02
"""Time after which a transaction takes no further experiments; others wait for the write lock meanwhile."""
SHARE = 20
"""An experiment is not updated again for this multiple of the time that its update took, ..."""
MAX_HOLD_BACK_SECONDS = 5.0
"""... within bounds, since everything is slow on a busy machine."""
VALUES_A_SECOND = 200
"""Rate limit for one experiment: each value may be on a page of its own, which is written whole."""


class Indexer:
    """The only writer of indexed values. Marks and values change in one transaction, so a crash loses neither."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._not_before: dict[int, float] = {}
        self._one_at_a_time = asyncio.Lock()
        self._items = Isolation("columns", logger)

    async def catch_up(self, *, at_once: bool = False) -> float | None:
        """Updates all stale experiments that are due. Returns the seconds until the next one is due."""
        async with self._one_at_a_time:
            async with self._database.read() as session:
                stale = await index_repository.stale(session)
            now = time.monotonic()
            self._not_before = {i: due for i, due in self._not_before.items() if due > now}
            ready = [i for i in stale if at_once or i not in self._not_before]
            due = [i for i in ready if at_once or self._items.is_due("experiment", i)]
            while due:
                start = time.monotonic()
                try:
                    due = await self._batch(due)
                except Exception as error:
                    first, due = due[0], due[1:]
                    with self._items.attempt("experiment", first):
                        await self._batch([first])
                    if isinstance(error, OperationalError) and not self._items.is_due("experiment", first):
                        raise  # an error of the database concerns every experiment: the loop backs off
                # Sleeps as long as the lock was held, so that other writers get it.
                await asyncio.sleep(time.monotonic() - start if due else 0)
            held_back = [self._not_before[i] for i in stale if i in self._not_before]
        left = max(0.0, min(held_back) - time.monotonic()) if held_back else None
        return self._items.soonest(left)

    async def _batch(self, due: list[int]) -> list[int]:
        """Updates a batch of experiments and returns the rest of ``due``."""
        taken: list[tuple[int, int, float]] = []
        async with self._database.write() as session:
            start = now = time.monotonic()
            while len(taken) < len(due) and (not taken or now - start < BATCH_SECONDS):
                experiment_id = due[len(taken)]
                count = await index_upkeep.keep(session, experiment_id)
                taken.append((experiment_id, count, time.monotonic() - now))
                now = time.monotonic()
        ended = time.monotonic()
        # The commit costs as much again if values are on many pages; each experiment gets its share.
        dearer = (ended - start) / max(now - start, 1e-6)
        for experiment_id, count, seconds in taken:
            rest = min(MAX_HOLD_BACK_SECONDS, SHARE * dearer * seconds)
            self._not_before[experiment_id] = ended + max(rest, count / VALUES_A_SECOND)
        return due[len(taken) :]
