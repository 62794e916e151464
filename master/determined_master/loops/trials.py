"""Requests allocations for active trials and settles those that ended."""

import logging
from datetime import datetime, timedelta
from functools import partial

from determined.link.isolation import Isolation
from determined.states import ExitReason, TrialState
from determined_master.allocations import repository as allocation_rows
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow
from determined_master.db.session import Database, WriteSession
from determined_master.experiments import repository as experiment_rows
from determined_master.logs import repository as log_rows
from determined_master.trials import repository as trial_rows
from determined_master.trials.service import Trials

logger = logging.getLogger(__name__)

INVALID_GRACE_SECONDS = 10.0


class TrialLoop:
    def __init__(self, database: Database, clock: Clock, trials: Trials) -> None:
        self._database = database
        self._clock = clock
        self._trials = trials
        self._items = Isolation("trials", logger)
        self._leave_by: dict[int, datetime] = {}
        """Trials with invalid hyperparameters that still run. Kept in memory: a restart gives them the time again."""

    async def tick(self) -> float | None:
        await self._settle()
        await self._finish_stopped()
        waits = [await self._end_invalid(), await self._request()]
        return self._items.soonest(*waits)

    async def _settle(self) -> None:
        async with self._database.read() as session:
            ended = [row.id for row in await allocation_rows.unsettled(session)]
        for allocation_id in ended:
            await self._items.run("allocation", allocation_id, partial(self._settle_one, allocation_id))

    async def _settle_one(self, allocation_id: str) -> None:
        async with self._database.write() as session:
            row = await allocation_rows.get(session, allocation_id)
            trial = await trial_rows.find_by_task(session, row.task_id)
            experiment = await experiment_rows.find(session, trial.experiment_id) if trial else None
            if trial is None or experiment is None:
                # The experiment was deleted first: nobody is left for whom the end has consequences.
                await allocation_rows.change(session, row, settled=True)
                return
            await self._say_why(session, row)
            await self._trials.settle(session, trial, experiment, row)

    async def _say_why(self, session: WriteSession, row: AllocationRow) -> None:
        """What no container's own log says, or what of several says what the cause was."""
        containers = await allocation_rows.containers_of(session, row.id)
        reason = row.exit_reason or ExitReason.SYSTEM
        is_failure = reason.is_system_failure or reason in (ExitReason.ERRORED, ExitReason.IMPOSSIBLE)
        if is_failure and row.message and (len(containers) != 1 or reason is not ExitReason.ERRORED):
            text = f"attempt {row.run_id} failed: {row.message}"
            await log_rows.say(session, row.task_id, row.id, text, self._clock.now(), "ERROR")

    async def _finish_stopped(self) -> None:
        async with self._database.read() as session:
            stopping = await trial_rows.stopping(session)
            live = {a.task_id for a in await allocation_rows.live_of_tasks(session, [t.task_id for t in stopping])}
        for trial in stopping:
            if trial.task_id not in live:
                await self._items.run("trial", trial.id, partial(self._finish_one, trial.id))

    async def _finish_one(self, trial_id: int) -> None:
        async with self._database.write() as session:
            row = await trial_rows.get(session, trial_id)
            # An allocation that has just ended says how the trial ends; the next tick settles it.
            if row.state.is_stopping and not await allocation_rows.has_open(session, row.task_id):
                await self._trials.finish_stopped(session, row)

    async def _end_invalid(self) -> float | None:
        """Who reported invalid hyperparameters ends by itself, or is killed; seconds until the next that is due."""
        now = self._clock.now()
        async with self._database.read() as session:
            trials = await trial_rows.invalid(session)
            live = {a.task_id: a.id for a in await allocation_rows.live_of_tasks(session, [t.task_id for t in trials])}
        self._leave_by = {
            t.id: self._leave_by.get(t.id, now + timedelta(seconds=INVALID_GRACE_SECONDS))
            for t in trials
            if t.task_id in live
        }
        for trial in trials:
            if self._leave_by.get(trial.id, now) > now or trial.task_id not in live:
                continue
            await self._items.run("trial", trial.id, partial(self._kill_one, live[trial.task_id]))
        return min(((due - now).total_seconds() for due in self._leave_by.values() if due > now), default=None)

    async def _kill_one(self, allocation_id: str) -> None:
        async with self._database.write() as session:
            await self._trials.kill_attempt(session, await allocation_rows.get(session, allocation_id))

    async def _request(self) -> float | None:
        """Seconds until the next trial that backs off may be tried again."""
        now = self._clock.now()
        soonest: float | None = None
        async with self._database.read() as session:
            wanting = await trial_rows.wanting_slots(session)
            live = {a.task_id for a in await allocation_rows.live_of_tasks(session, [t.task_id for t, _ in wanting])}
            ended = {a.task_id for a in await allocation_rows.unsettled(session)}
        due: list[int] = []
        for trial, _experiment in wanting:
            if trial.task_id in live or trial.task_id in ended:
                continue
            if trial.retry_at is not None and trial.retry_at > now:
                left = (trial.retry_at - now).total_seconds()
                soonest = left if soonest is None else min(soonest, left)
                continue
            due.append(trial.id)
        for trial_id in due:
            await self._items.run("trial", trial_id, partial(self._request_one, trial_id))
        return soonest

    async def _request_one(self, trial_id: int) -> None:
        async with self._database.write() as session:
            row = await trial_rows.get(session, trial_id)
            if row.state is not TrialState.ACTIVE or await allocation_rows.live_of_task(session, row.task_id):
                return
            await self._trials.request_slots(session, row, await experiment_rows.get(session, row.experiment_id))
