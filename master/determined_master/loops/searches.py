"""Lets each search process its new events; a search from which no trial or end can follow does it a little later."""

import logging
from functools import partial

from determined.link.isolation import Isolation
from determined_master.db.session import Database
from determined_master.experiments import repository
from determined_master.experiments.hp_search import Search

logger = logging.getLogger(__name__)


class SearchLoop:
    def __init__(self, database: Database, search: Search) -> None:
        self._database = database
        self._search = search
        self._items = Isolation("search", logger)

    async def tick(self) -> float | None:
        """Returns the seconds until the next search is due."""
        async with self._database.read() as session:
            due = await repository.searches_due(session)
        waits: list[float] = []
        for experiment_id, left in self._search.kept.seconds_left(due).items():
            if left > 0:
                waits.append(left)
                continue
            await self._items.run("experiment", experiment_id, partial(self._search.advance, experiment_id))
        return self._items.soonest(min(waits, default=None))
