"""Settles a completed attempt of a trial and lets its search continue, in the transaction that ends the attempt."""

from determined.states import ExperimentState, TrialState
from determined_master import notifications
from determined_master.db.models import AllocationRow, ExperimentRow
from determined_master.db.session import WriteSession, topics_of
from determined_master.experiments import repository
from determined_master.experiments.hp_search import Search
from determined_master.trials import repository as trial_rows
from determined_master.trials.service import Trials

MAX_REQUESTS = 16
"""The loop requests slots for more trials than these, because others wait for the write lock meanwhile."""


class Completion:
    """Most attempts complete. One transaction for what follows costs half of what the loops need, which do the same in
    one each: for every other end, after a crash, and where this has failed."""

    def __init__(self, trials: Trials, search: Search) -> None:
        self._trials = trials
        self._search = search
        self._failed: set[str] = set()
        """Ids of attempts for which this raised an error. Their agents report the end again."""

    async def follow(self, session: WriteSession, ended: AllocationRow) -> bool:
        """Does what follows from the end of an attempt. Returns False if that is left to the loops."""
        if ended.id in self._failed:
            self._failed.discard(ended.id)
            return False
        self._failed.add(ended.id)
        is_done = await self._follow(session, ended)
        self._failed.discard(ended.id)
        return is_done

    async def _follow(self, session: WriteSession, ended: AllocationRow) -> bool:
        trial = await trial_rows.find_by_task(session, ended.task_id)
        experiment = await repository.find(session, trial.experiment_id) if trial else None
        if trial is None or experiment is None:
            return False
        topics = topics_of(session)
        others = set(topics)
        await self._trials.settle(session, trial, experiment, ended)
        if trial.state is TrialState.COMPLETED:
            topics -= await self._continue(session, experiment) - others
        return True

    async def _continue(self, session: WriteSession, experiment: ExperimentRow) -> set[str]:
        """Returns the topics whose loops have nothing to do."""
        following = await self._search.follow(session, experiment)
        if following is None:
            return set()
        created = following.created
        if not following.only_creates or len(created) > MAX_REQUESTS or experiment.state is not ExperimentState.ACTIVE:
            return set()
        if created:
            await self._trials.request_slots(session, await trial_rows.by_ids(session, created), experiment)
        return {notifications.SEARCH, notifications.TRIALS}
