"""Moves the trials of experiments that were paused, activated or stopped, a lot in each transaction.

The command itself moves the first lot (trials/service.py), which is all of them in most experiments. Others write
between the lots, and after a crash the trials are found again by the state of their experiment.
"""

import logging
from functools import partial

from determined.link.isolation import Isolation
from determined.states import ExperimentState
from determined_master.db.session import Database
from determined_master.events import repository as events
from determined_master.experiments import repository as experiment_rows
from determined_master.trials import lagging_queries
from determined_master.trials.service import Trials
from determined_master.trials.states import following_state

logger = logging.getLogger(__name__)


class TrialStates:
    def __init__(self, database: Database, trials: Trials) -> None:
        self._database = database
        self._trials = trials
        self._items = Isolation("states of trials", logger)
        self._has_begun = False

    async def tick(self) -> float | None:
        if not self._has_begun:
            async with self._database.read() as session:
                self._trials.behind.update(await lagging_queries.experiments(session))
            self._has_begun = True
        while due := [i for i in sorted(self._trials.behind) if self._items.is_due("experiment", i)]:
            for experiment_id in due:
                await self._items.run("experiment", experiment_id, partial(self._move_lot, experiment_id))
        return self._items.seconds_left()

    async def _move_lot(self, experiment_id: int) -> None:
        # Before they are looked up: a command that finds more adds the experiment again.
        self._trials.behind.discard(experiment_id)
        try:
            await self._follow(experiment_id)
        except BaseException:
            self._trials.behind.add(experiment_id)
            raise

    async def _follow(self, experiment_id: int) -> None:
        async with self._database.read() as session:
            row = await experiment_rows.find(session, experiment_id)
            to = None if row is None else following_state(row.state)
            if row is None or to is None:
                return
            move = await events.last_move(session, "experiment", experiment_id)
            actor = move.actor if move is not None else events.SYSTEM
            if actor == events.SYSTEM and row.state is ExperimentState.STOPPING_CANCELED:
                return  # by its search, which lets its trials end
            # Before the transaction: those that have moved are passed over, which takes long if they are many.
            trials = await lagging_queries.lagging(session, experiment_id, to)
        if not trials:
            return
        async with self._database.write() as session:
            now = await experiment_rows.get(session, experiment_id)
            if now.state is row.state:
                await self._trials.follow_experiment(session, now, actor, trials)
            else:
                self._trials.behind.add(experiment_id)
