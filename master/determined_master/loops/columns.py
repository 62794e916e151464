"""Keeps the experiment index up to date: experiments with very many values alone, all others in small batches."""

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial

from sqlalchemy.exc import OperationalError

from determined.link.isolation import Isolation
from determined_master.experiment_index.indexer import Indexer

logger = logging.getLogger(__name__)


class ColumnLoop:
    def __init__(self, indexer: Indexer) -> None:
        self._indexer = indexer
        self._items = Isolation("columns", logger)

    async def tick(self, *, at_once: bool = False) -> float | None:
        """Updates all stale experiments that are due, ``at_once`` also those that are held back.

        Returns the seconds until the next one is due.
        """
        async with self._indexer.one_at_a_time:
            stale = await self._indexer.stale()
            due = stale if at_once else self._due(stale)
            large = await self._indexer.large(due)
            for experiment_id in large:
                await self._items.run("experiment", experiment_id, partial(self._indexer.update_large, experiment_id))
            await self._update_in_batches([i for i in due if i not in large])
            return self._items.soonest(self._indexer.seconds_left(stale))

    def _due(self, stale: Sequence[int]) -> list[int]:
        ready = self._indexer.without_held_back(stale)
        return [experiment_id for experiment_id in ready if self._items.is_due("experiment", experiment_id)]

    async def _update_in_batches(self, due: list[int]) -> None:
        while due:
            start = time.monotonic()
            try:
                due = await self._indexer.update_batch(due)
            except Exception as error:
                first, due = due[0], due[1:]
                with self._items.attempt("experiment", first):
                    await self._indexer.update_batch([first])
                if isinstance(error, OperationalError) and not self._items.is_due("experiment", first):
                    raise  # an error of the database concerns every experiment: the loop backs off
            # Sleeps as long as the lock was held, so that other writers get it.
            await asyncio.sleep(time.monotonic() - start if due else 0)
