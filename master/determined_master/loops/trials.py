"""Requests allocations for active trials and settles those that ended."""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from determined.link.isolation import Isolation
from determined.states import ExitReason, ExperimentState, TrialState
from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ExperimentRow
from determined_master.db.session import Database, ReadSession, notify
from determined_master.db.statements.batches import batched
from determined_master.experiments import repository as experiment_rows
from determined_master.logs.policies import policies_of
from determined_master.trials import due_queries
from determined_master.trials import repository as trial_rows
from determined_master.trials.due_queries import DueTrial
from determined_master.trials.service import Trials
from determined_master.trials.states import following_state

logger = logging.getLogger(__name__)

INVALID_GRACE_SECONDS = 10.0
OUTPUT_GRACE_SECONDS = 30.0
FINISH_BATCH = 500
REQUEST_BATCH = 100
"""Trials per transaction: others wait for the write lock meanwhile."""
REQUEST_CHARACTERS = 2_000_000
"""Characters of configurations in one transaction."""


@dataclass(frozen=True)
class TrialsView:
    """A page of the input of one tick. One transaction reads all of it, because most ticks have little to do."""

    unsettled: Sequence[str]
    """Ids of allocations that ended and are not settled."""
    stopped: Sequence[int]
    """Ids of trials that were stopped and hold no allocation."""
    invalid: Sequence[tuple[int, str]]
    """Trials with invalid hyperparameters that still run, each with its allocation."""
    unhealthy: Sequence[int]
    """Trials that a metric which is not finite is to end."""
    wanting: Sequence[DueTrial]
    next_page: int | None
    """The id after which the next page begins; None for the last one."""


class TrialLoop:
    def __init__(self, database: Database, clock: Clock, trials: Trials) -> None:
        self._database = database
        self._clock = clock
        self._trials = trials
        self._items = Isolation("trials", logger)
        self._leave_by: dict[int, datetime] = {}
        """Trials with invalid hyperparameters that still run. In memory: a restart restarts their deadlines."""

    async def tick(self) -> float | None:
        view = await self._load()
        # What follows from a settlement is due at the next tick, of which it notifies.
        waits = [await self._settle(view.unsettled)]
        invalid: list[tuple[int, str]] = []
        while True:
            await self._in_batches(view.stopped, FINISH_BATCH, self._finish)
            for trial_id in view.unhealthy:
                await self._items.run("trial", trial_id, partial(self._stop_unhealthy, trial_id))
            waits.append(await self._request(view.wanting))
            invalid += view.invalid
            if view.next_page is None:
                break
            view = await self._load(view.next_page)
        waits.append(await self._end_invalid(invalid))
        return self._items.soonest(*waits)

    async def _load(self, after: int = 0) -> TrialsView:
        async with self._database.read() as session:
            unsettled = [] if after else await allocation_rows.unsettled(session, of_trials=True)
            due = await due_queries.due(session, after)
            invalid = [trial for trial in due if trial.is_invalid]
            live: dict[str, str] = {}
            if invalid:
                of_invalid = await allocation_rows.live_of_tasks(session, [trial.task_id for trial in invalid])
                live = {row.task_id: row.id for row in of_invalid}
        idle = [trial for trial in due if not trial.has_open]
        return TrialsView(
            unsettled=unsettled,
            stopped=[trial.trial_id for trial in idle if trial.state.is_stopping],
            invalid=[(trial.trial_id, live[trial.task_id]) for trial in invalid if trial.task_id in live],
            unhealthy=[t.trial_id for t in due if t.must_stop and not t.state.is_stopping],
            wanting=[trial for trial in idle if trial.state is TrialState.ACTIVE],
            next_page=due[-1].trial_id if len(due) == due_queries.PAGE_TRIALS else None,
        )

    async def _settle(self, allocation_ids: Sequence[str]) -> float | None:
        """Settles ended attempts. Returns the seconds until the output of another one is no longer waited for."""
        waits: list[float] = []
        for allocation_id in allocation_ids:
            await self._items.run("allocation", allocation_id, partial(self._settle_one, allocation_id, waits))
        return min(waits, default=None)

    async def _settle_one(self, allocation_id: str, waits: list[float]) -> None:
        async with self._database.write() as session:
            row = await allocation_rows.get(session, allocation_id)
            trial = await trial_rows.find_by_task(session, row.task_id)
            if trial is None:
                # The experiment was deleted first: there is nothing to settle.
                await allocation_rows.change(session, row, settled=True)
                return
            experiment = await experiment_rows.get(session, trial.experiment_id)
            left = await self._output_due(session, row, experiment)
            if left > 0:
                waits.append(left)
                return
            await self._trials.settle(session, trial, experiment, row)

    async def _output_due(self, session: ReadSession, row: AllocationRow, experiment: ExperimentRow) -> float:
        """Returns for how long to wait for the output of a failed attempt: its last lines may match a log policy with
        an action, and agents report the end first."""
        acting = any(policy.action for policy in policies_of(experiment.config.get("log_policies")))
        if not acting or row.exit_reason is not ExitReason.ERRORED or row.ended_at is None:
            return 0.0
        if all(each.output_done for each in await allocation_rows.containers_of(session, row.id)):
            return 0.0
        return (row.ended_at - self._clock.now()).total_seconds() + OUTPUT_GRACE_SECONDS

    async def _finish(self, trial_ids: Sequence[int]) -> None:
        async with self._database.write() as session:
            await self._trials.finish_stopped(session, trial_ids)

    async def _in_batches(
        self, trial_ids: Sequence[int], size: int, work: Callable[[Sequence[int]], Awaitable[None]]
    ) -> None:
        """Settles in batches, one transaction each. Trials of a failed batch are settled one by one, isolated."""
        due = [trial_id for trial_id in trial_ids if self._items.is_due("trial", trial_id)]
        for batch in batched(due, size):
            if len(batch) > 1:
                try:
                    await work(batch)
                    continue
                except Exception as error:
                    logger.info(
                        "processing %d trials together failed; processing them one by one: %s", len(batch), error
                    )
            for trial_id in batch:
                await self._items.run("trial", trial_id, partial(work, [trial_id]))

    async def _stop_unhealthy(self, trial_id: int) -> None:
        async with self._database.write() as session:
            row = await trial_rows.get(session, trial_id)
            if row.must_stop and not row.state.is_stopping:
                await self._trials.stop_unhealthy(session, row)

    async def _end_invalid(self, trials: Sequence[tuple[int, str]]) -> float | None:
        """Kills trials with invalid hyperparameters that do not end. Returns the seconds until the next is due."""
        now = self._clock.now()
        leave_by = now + timedelta(seconds=INVALID_GRACE_SECONDS)
        self._leave_by = {trial_id: self._leave_by.get(trial_id, leave_by) for trial_id, _ in trials}
        for trial_id, allocation_id in trials:
            if self._leave_by[trial_id] <= now:
                await self._items.run("trial", trial_id, partial(self._kill_one, allocation_id))
        return min(((due - now).total_seconds() for due in self._leave_by.values() if due > now), default=None)

    async def _kill_one(self, allocation_id: str) -> None:
        async with self._database.write() as session:
            row = await allocation_rows.get(session, allocation_id)
            await self._trials.kill_attempt(session, row, "it reported invalid hyperparameters and did not exit")

    async def _request(self, wanting: Sequence[DueTrial]) -> float | None:
        """Requests slots for trials. Returns the seconds until the next back-off ends."""
        now = self._clock.now()
        waits = [(each.retry_at - now).total_seconds() for each in wanting if each.retry_at and each.retry_at > now]
        due: dict[int, list[int]] = defaultdict(list)
        for each in wanting:
            if each.retry_at is None or each.retry_at <= now:
                due[each.experiment_id].append(each.trial_id)
        for experiment_id, trial_ids in due.items():
            if experiment_id in self._trials.behind and not await self._is_active(experiment_id):
                continue  # its trials are about to follow it
            await self._in_batches(trial_ids, REQUEST_BATCH, partial(self._request_some, experiment_id))
        return min(waits, default=None)

    async def _is_active(self, experiment_id: int) -> bool:
        async with self._database.read() as session:
            row = await experiment_rows.find(session, experiment_id)
        return row is not None and row.state is ExperimentState.ACTIVE

    async def _request_some(self, experiment_id: int, trial_ids: Sequence[int]) -> None:
        async with self._database.write() as session:
            rows = await due_queries.wanting_slots_of(session, trial_ids)
            if not rows:
                return
            experiment = await experiment_rows.get(session, experiment_id)
            if following_state(experiment.state) not in (TrialState.ACTIVE, None):
                return
            # Each request has the configuration in its spec.
            most = max(1, REQUEST_CHARACTERS // (len(experiment.original_config) + 1))
            if most < len(rows):
                notify(session, notifications.TRIALS)
            await self._trials.request_slots(session, rows[:most], experiment)
