"""Packs reports into series in small steps, slowly while the writer is busy."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from determined.link.isolation import Isolation
from determined_master.db.session import Database
from determined_master.metric_series import repository
from determined_master.metric_series.repository import TrialToPack
from determined_master.metric_series.series_packer import MIN_POINTS, MIN_POINTS_AT_END, SeriesPacker

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 5.0
TRIALS_PER_TRANSACTION = 32
LOOKS = 6
PATIENT_SECONDS = 1.0
QUIET_GROUPS = 3
"""Groups that the writer may commit during one step and still count as idle."""


class PackingLoop:
    """``groups_written`` returns the number of groups that the group-commit writer has committed. ``least`` and
    ``least_at_end``: minimum reports of a live and of an ended trial that are packed."""

    def __init__(
        self,
        database: Database,
        groups_written: Callable[[], int],
        *,
        least: int = MIN_POINTS,
        least_at_end: int = MIN_POINTS_AT_END,
    ) -> None:
        self._database = database
        self._groups_written = groups_written
        self._least = least
        self._packer = SeriesPacker(database, least_at_end)
        self._newest = -1
        self._last = 0
        self._looks = 0
        self._items = Isolation("packing", logger)

    async def tick(self) -> float | None:
        """Packs one step of some trials. Returns the seconds until the next if there is more to pack."""
        due = await self._due()
        packed = await self._packer.finish([entry.trial for entry in due if self._packer.is_short(entry)])
        left = [entry for entry in due if not packed or not self._packer.is_short(entry)]
        for trial, has_ended, _ in left:
            written = self._groups_written()
            packed += await self._items.run("trial", trial.trial_id, partial(self._packer.pack, trial, has_ended))
            self._last = trial.trial_id
            if self._groups_written() - written > QUIET_GROUPS:
                return PATIENT_SECONDS
        if not due:
            return None
        # If none could be packed there is no work until a failed one may be tried again.
        return 0.0 if packed else self._items.seconds_left()

    async def _due(self) -> Sequence[TrialToPack]:
        async with self._database.read() as session:
            newest = await repository.newest_report(session)
            self._looks += 1
            # Every sixth step also finds trials that have ended without a further report.
            if newest == self._newest and self._looks % LOOKS:
                return []
            due = await repository.due(session, self._least, TRIALS_PER_TRANSACTION, self._last)
        self._newest = -1 if due else newest
        return due
