"""Keeps the methods of searches between their events, and says which searches wait for validations."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from determined_master import notifications
from determined_master.notifications import Notifications
from determined_master.searcher.method import SearchMethod

MAX_KEPT_METHODS = 64
LATE_SECONDS = 1.0
"""Validations from which nothing follows but the progress are processed so much later, together with what comes."""


@dataclass
class KeptMethod:
    """The method of a search after the event ``cursor``; its newest snapshot is of the event ``stored``."""

    method: SearchMethod
    cursor: int
    stored: int
    unstored: int = 0
    """Number of events since then."""


class KeptSearches:
    """The methods that need not be restored for the next event. In memory only: a restart loses nothing."""

    def __init__(self, publisher: Notifications) -> None:
        self._publisher = publisher
        self._methods: dict[int, KeptMethod] = {}
        self._late: dict[int, float] = {}
        """When the validations of a search are processed at the latest, by the clock of the event loop."""

    def pop(self, experiment_id: int) -> KeptMethod | None:
        """Returns the method, which is not kept any more: it changes with each event, and the commit may fail."""
        return self._methods.pop(experiment_id, None)

    def put(self, experiment_id: int, kept: KeptMethod) -> None:
        """Keeps a method whose last event is committed. Of many, the one that was kept longest is given up."""
        self._methods[experiment_id] = kept
        while len(self._methods) > MAX_KEPT_METHODS:
            self._methods.pop(next(iter(self._methods)))

    def search_waits_for(self, experiment_id: int) -> bool:
        """Returns True if a search may decide on a validation that was just stored. Others process it a little later,
        for which this wakes their loop."""
        if self._decides_on_validations(experiment_id):
            return True
        if experiment_id not in self._late:
            loop = asyncio.get_running_loop()
            self._late[experiment_id] = loop.time() + LATE_SECONDS
            loop.call_later(LATE_SECONDS, self._publisher.publish, {notifications.SEARCH})
        return False

    def seconds_left(self, due: Mapping[int, bool]) -> dict[int, float]:
        """Returns in how many seconds each search is to process its events: 0.0 for those that are due now. ``due``:
        the experiments with events, and whether there are others than validations."""
        self._late = {experiment_id: at for experiment_id, at in self._late.items() if experiment_id in due}
        now = asyncio.get_running_loop().time()
        waits: dict[int, float] = {}
        for experiment_id, has_others in due.items():
            waits[experiment_id] = 0.0
            if not has_others and not self._decides_on_validations(experiment_id):
                waits[experiment_id] = max(0.0, self._late.setdefault(experiment_id, now + LATE_SECONDS) - now)
            if waits[experiment_id] == 0.0:
                self._late.pop(experiment_id, None)
        return waits

    def _decides_on_validations(self, experiment_id: int) -> bool:
        """Returns True also for a search whose method is not kept."""
        kept = self._methods.get(experiment_id)
        return kept is None or kept.method.decides_on_validations
