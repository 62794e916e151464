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
"""How long a transaction goes on taking in experiments; others wait for the write lock meanwhile."""
SHARE = 20
"""An experiment whose values took a time to bring into step is left alone for so many times that, ..."""
MAX_HOLD_BACK_SECONDS = 5.0
"""... within bounds, since a busy machine makes everything take long."""
VALUES_A_SECOND = 200
"""Of one experiment: each value may lie on a page of its own, which is written as a whole."""


class Indexer:
    """The one writer of values. Marks and values change in one transaction: a crash loses neither."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._not_before: dict[int, float] = {}
        self._one_at_a_time = asyncio.Lock()
        self._items = Isolation("columns", logger)

    async def catch_up(self, *, at_once: bool = False) -> float | None:
        """Takes in all that is stale and not held back; answers the seconds until the next that is."""
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
                        raise  # the database's own trouble is every experiment's: the loop backs off
                # The lock is free for as long as it was held: whoever waits comes in between.
                await asyncio.sleep(time.monotonic() - start if due else 0)
            held_back = [self._not_before[i] for i in stale if i in self._not_before]
        left = max(0.0, min(held_back) - time.monotonic()) if held_back else None
        return self._items.soonest(left)

    async def _batch(self, due: list[int]) -> list[int]:
        """What is left of ``due``."""
        taken: list[tuple[int, int, float]] = []
        async with self._database.write() as session:
            start = now = time.monotonic()
            while len(taken) < len(due) and (not taken or now - start < BATCH_SECONDS):
                experiment_id = due[len(taken)]
                count = await index_upkeep.keep(session, experiment_id)
                taken.append((experiment_id, count, time.monotonic() - now))
                now = time.monotonic()
        ended = time.monotonic()
        # The commit costs as much again where values lie on many pages; each pays its part of it.
        dearer = (ended - start) / max(now - start, 1e-6)
        for experiment_id, count, seconds in taken:
            rest = min(MAX_HOLD_BACK_SECONDS, SHARE * dearer * seconds)
            self._not_before[experiment_id] = ended + max(rest, count / VALUES_A_SECOND)
        return due[len(taken) :]
