"""Life cycle of trials: create, pause, activate, stop, request slots, settle ended attempts."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from determined.config.experiment import MAX_PREEMPTION_TIMEOUT_SECONDS
from determined.states import AllocationState, ExitReason, ExperimentState, TrialState
from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.service import Allocations
from determined_master.checkpoints import repository as checkpoints
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.db.session import WriteSession, after_commit, notify
from determined_master.logs import repository as logs
from determined_master.searcher.actions import Create
from determined_master.trials import repository
from determined_master.trials.environment import container_spec
from determined_master.trials.search_event_repository import add_event
from determined_master.trials.states import AttemptEnd, decide
from determined_master.trials.task_name import task_name
from determined_master.users import repository as users


class Trials:
    """Every method works inside the caller's session."""

    def __init__(
        self,
        clock: Clock,
        allocations: Allocations,
        new_run: Callable[[Sequence[int]], None],
        *,
        pool_hook: str = "",
        interface: str = "",
    ) -> None:
        """``new_run`` is called with the ids of trials whose run has changed, once that is committed."""
        self._clock = clock
        self._new_run = new_run
        self._allocations = allocations
        self._pool_hook = pool_hook
        self._interface = interface

    async def create(
        self, session: WriteSession, experiment: ExperimentRow, action: Create, *, warm_start: str | None = None
    ) -> TrialRow:
        row = await repository.add(
            session,
            experiment_id=experiment.id,
            request_id=action.request_id,
            task_id=task_name(experiment.id, action.request_id),
            state=TrialState.PAUSED if experiment.state is ExperimentState.PAUSED else TrialState.ACTIVE,
            hparams=action.hparams,
            seed=action.seed,
            start_time=self._clock.now(),
            warm_start_checkpoint=warm_start,
        )
        notify(session, notifications.TRIALS, notifications.COLUMNS)
        return row

    async def pause(self, session: WriteSession, row: TrialRow, actor: str) -> None:
        if row.state is TrialState.ACTIVE:
            await repository.move(session, self._clock, row, TrialState.PAUSED, actor=actor)
            await self._terminate(session, row)

    async def activate_all(self, session: WriteSession, rows: Sequence[TrialRow], actor: str) -> None:
        """Activates those that are paused, in a few statements however many they are."""
        paused = [row.id for row in rows if row.state is TrialState.PAUSED]
        if await repository.MACHINE.move_many(
            session, self._clock, paused, TrialState.PAUSED, TrialState.ACTIVE, actor, retry_at=None
        ):
            notify(session, notifications.TRIALS, notifications.experiment(rows[0].experiment_id))

    async def stop(self, session: WriteSession, row: TrialRow, to: TrialState, actor: str) -> None:
        """Towards one of the STOPPING states; no-op where it has ended. Ends at once where nothing runs."""
        if row.state.is_terminal or row.state is to:
            return
        if row.state.is_stopping and to is TrialState.STOPPING_CANCELED:
            return
        await repository.move(session, self._clock, row, to, actor=actor)
        live = await allocation_rows.live_of_task(session, row.task_id)
        if live is None:
            notify(session, notifications.TRIALS)
        elif to in (TrialState.STOPPING_KILLED, TrialState.STOPPING_ERROR):
            await self._allocations.kill(session, live)
        else:
            await self._preempt(session, live)

    async def request_slots(self, session: WriteSession, row: TrialRow, experiment: ExperimentRow) -> None:
        """A new attempt, from the newest whole checkpoint."""
        user = await users.get(session, experiment.user_id)
        owner = user.username
        newest = await checkpoints.newest_completed(session, row.task_id)
        steps = newest.steps_completed if newest else 0
        await repository.change(
            session, row, run_id=row.run_id + 1, run_start_steps=steps, retry_at=None, runner_state=""
        )
        after_commit(session, partial(self._new_run, [row.id]))
        spec = container_spec(
            experiment,
            row,
            owner=owner,
            steps=steps,
            checkpoint=newest.uuid if newest else row.warm_start_checkpoint,
            pool_hook=self._pool_hook,
            interface=self._interface,
        )
        resources = experiment.config["resources"]
        timeout = experiment.config.get("preemption_timeout")
        allocation = await self._allocations.request(
            session,
            task_id=row.task_id,
            run_id=row.run_id,
            slots=resources["slots_per_trial"],
            single_agent=bool(resources.get("is_single_node")),
            pool=experiment.pool,
            priority=experiment.priority,
            owner=owner,
            user_id=experiment.user_id,
            submitted_at=experiment.start_time,
            spec=spec,
            preemption_timeout=3600 if timeout is None else timeout,
        )
        if user.agent_user_group:
            text = f"{owner} is linked with {_linked(user.agent_user_group)}; this task does not run as that user yet"
            await logs.say(session, row.task_id, allocation.id, text, self._clock.now(), "WARNING")

    async def settle(
        self, session: WriteSession, row: TrialRow, experiment: ExperimentRow, ended: AllocationRow
    ) -> None:
        """Draws the consequences of an ended allocation, once."""
        if ended.run_id == row.run_id and row.state.is_live:
            fate = decide(
                AttemptEnd(
                    state=row.state,
                    reason=ended.exit_reason or ExitReason.SYSTEM,
                    restarts=row.restarts,
                    max_restarts=experiment.config["max_restarts"],
                    invalid_hp=row.invalid_hp,
                    system_failures=row.system_failures,
                )
            )
            values: dict[str, Any] = {"restarts": fate.restarts, "system_failures": fate.system_failures}
            if fate.state is not None:
                await repository.move(session, self._clock, row, fate.state, exit_reason=fate.reason, **values)
                await self._close(session, row)
            else:
                retry_at = self._clock.now() + timedelta(seconds=fate.backoff) if fate.backoff else None
                await repository.change(session, row, retry_at=retry_at, **values)
                notify(session, notifications.TRIALS)
        await allocation_rows.change(session, ended, settled=True)

    async def kill_attempt(self, session: WriteSession, allocation: AllocationRow) -> None:
        """Ends an attempt; what follows for its trial is decided when it has ended."""
        await self._allocations.kill(session, allocation)

    async def finish_stopped(self, session: WriteSession, row: TrialRow) -> None:
        """A stopping trial without a live allocation has nothing to wait for."""
        fate = decide(AttemptEnd(row.state, ExitReason.KILLED, row.restarts, 0))
        if fate.state is not None:
            await repository.move(session, self._clock, row, fate.state, exit_reason=fate.reason)
            await self._close(session, row)

    async def _close(self, session: WriteSession, row: TrialRow) -> None:
        reason = row.exit_reason or ExitReason.ERRORED
        await add_event(session, row.experiment_id, row.id, "closed", {"reason": reason.value})
        progress = 1.0 if row.state is TrialState.COMPLETED else row.progress
        await repository.change(session, row, closed=True, progress=progress)
        notify(session, notifications.SEARCH, notifications.logs(row.task_id))

    async def _terminate(self, session: WriteSession, row: TrialRow) -> None:
        live = await allocation_rows.live_of_task(session, row.task_id)
        if live is not None and live.state is not AllocationState.TERMINATED:
            await self._preempt(session, live)

    async def _preempt(self, session: WriteSession, live: AllocationRow) -> None:
        """Asks an attempt to save and leave. Its log says when it is killed otherwise."""
        if await self._allocations.terminate(session, live):
            # Rows of earlier versions may hold any number.
            seconds = min(max(live.preemption_timeout, 0), MAX_PREEMPTION_TIMEOUT_SECONDS)
            at = self._clock.now() + timedelta(seconds=seconds)
            text = (
                "preemption was requested: the attempt is to save a checkpoint and exit; it is killed if it still runs "
                f"at {at:%Y-%m-%d %H:%M:%S} UTC (preemption_timeout: {seconds} s)"
            )
            await logs.say(session, live.task_id, live.id, text, self._clock.now(), "INFO")


def _linked(group: Mapping[str, Any]) -> str:
    return f"uid {group.get('agent_uid')} ({group.get('agent_user') or 'no name'})"
