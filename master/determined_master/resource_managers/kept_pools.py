"""The states of pools between decisions: read once, and changed after each commit by the rows that it changed."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from determined_master.db.queue_changes import QueueChanges
from determined_master.db.session import Database
from determined_master.resource_managers.pool_states import KeptPool, PoolStates
from determined_master.settings.pool_settings import PoolSettings

logger = logging.getLogger(__name__)


class KeptPools:
    def __init__(self, database: Database, settings: Mapping[str, PoolSettings], is_due: Callable[[str], bool]) -> None:
        """``is_due``: see ``PoolStates``."""
        self._database = database
        self._settings = settings
        self._is_due = is_due
        self._states: PoolStates | None = None
        self._lock = asyncio.Lock()
        """Held while states change, and while somebody reads them who must not see them change."""
        self._since_check: QueueChanges | None = None
        """What has changed since a check began to read."""

    @asynccontextmanager
    async def current(self) -> AsyncIterator[Mapping[str, KeptPool]]:
        """Yields the pools as they are after the last commit. Only decisions and excerpts belong into its block: the
        states follow the database, so nobody else changes them."""
        async with self._lock:
            yield (await self._refreshed()).pools

    async def check(self) -> QueueChanges:
        """Compares the states with others that are read anew, and takes those if they differ. Returns what differs.
        Decisions go on while it reads."""
        async with self._lock:
            await self._refreshed()
            self._since_check = QueueChanges()
        fresh = PoolStates(self._settings, self._is_due)
        try:
            with _no_collections(keeps=False):
                async with self._database.read() as session:
                    await fresh.read(session)
                async with self._lock:
                    differences = await self._compare(fresh, self._since_check)
                    if differences:
                        text = "the kept state of the queue differed from the database, and is replaced: %s"
                        logger.error(text, differences)
                        self._states, fresh = fresh, self._states or fresh
                await fresh.dismantle()
                return differences
        finally:
            self._since_check = None

    async def _compare(self, fresh: PoolStates, news: QueueChanges) -> QueueChanges:
        states = await self._refreshed()
        async with self._database.read() as session:
            await fresh.apply(session, news)
        if not news.is_known:
            return QueueChanges()  # everything was read anew meanwhile
        found = await states.differing(fresh)
        self._leave_out_news(found)
        return found

    def _leave_out_news(self, found: QueueChanges) -> None:
        """Commits after the last refresh may have reached only one of the two."""
        news = self._database.queue_changes
        if news.jobs or not news.is_known:
            found.allocations.clear()
        found.allocations -= news.allocations
        found.agents -= news.agents
        found.pools -= news.pools

    async def _refreshed(self) -> PoolStates:
        changes = self._database.queue_changes.drain()
        try:
            if self._states is None or not changes.is_known:
                states, former = PoolStates(self._settings, self._is_due), self._states
                with _no_collections(keeps=True):
                    async with self._database.read() as session:
                        await states.read(session)
                self._states = states
                if former is not None:
                    await former.dismantle()
            else:
                states = self._states
                for pool in states.pools.values():
                    changes.allocations.update(filter(self._is_due, pool.aside))
                if changes:
                    async with self._database.read() as session:
                        await states.apply(session, changes)
        except BaseException as error:
            # The next refresh reads them again; after an error everything, because a state may be left half changed.
            changes.is_known = changes.is_known and not isinstance(error, Exception)
            self._database.queue_changes.add(changes)
            raise
        if self._since_check is not None:
            self._since_check.add(changes)
        return states


@contextmanager
def _no_collections(*, keeps: bool) -> Iterator[None]:
    """Lets Python look for no garbage while very many objects are made: each look would hold up the event loop
    for longer than a slice of the work. ``keeps``: they stay, so later looks pass over them too."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if keeps:
            gc.freeze()
        if was_enabled:
            gc.enable()
