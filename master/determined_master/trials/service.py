"""Life cycle of trials: create, pause, activate, stop, request slots, settle ended attempts."""

from collections.abc import Callable, Sequence

from determined.states import AllocationState, ExperimentState, TrialState
from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.db.session import WriteSession, notify
from determined_master.events.state_machine import Event
from determined_master.logs import policy_match_repository
from determined_master.logs import repository as logs
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.searcher.actions import Create
from determined_master.trials import repository
from determined_master.trials.log_policies import LogPolicies
from determined_master.trials.settlement import Settlement
from determined_master.trials.slot_requests import SlotRequests
from determined_master.trials.states import ALLOWED
from determined_master.trials.task_name import task_name


class Trials:
    """Every method works inside the caller's session."""

    def __init__(
        self,
        clock: Clock,
        managers: ResourceManagers,
        new_run: Callable[[Sequence[int]], None],
        *,
        pool_hook: str = "",
        interface: str = "",
        cluster_storage: str = "",
        launch_error: bool = True,
    ) -> None:
        """``new_run`` is called with the ids of trials whose run has changed, once that is committed."""
        self._clock = clock
        self._managers = managers
        self._settlement = Settlement(clock, LogPolicies(managers, ends_impossible=launch_error))
        self._slot_requests = SlotRequests(
            clock,
            managers,
            new_run,
            pool_hook=pool_hook,
            interface=interface,
            cluster_storage=cluster_storage,
        )

    async def create(
        self, session: WriteSession, experiment: ExperimentRow, action: Create, *, warm_start: str | None = None
    ) -> TrialRow:
        row = await repository.add(
            session,
            experiment,
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

    async def pause_all(self, session: WriteSession, experiment_id: int, actor: str) -> None:
        """Pauses the experiment's active trials, in a constant number of statements."""
        await self._move_all(session, experiment_id, [TrialState.ACTIVE], TrialState.PAUSED, actor)
        await self._end_live(session, experiment_id, TrialState.PAUSED, f"paused by {actor}")

    async def activate_all(self, session: WriteSession, experiment_id: int, actor: str) -> None:
        """Activates the experiment's paused trials, in a constant number of statements."""
        await self._move_all(session, experiment_id, [TrialState.PAUSED], TrialState.ACTIVE, actor, retry_at=None)

    async def continue_ended(self, session: WriteSession, trials: Sequence[TrialRow], actor: str) -> None:
        """Activates ended trials again, in a constant number of statements. Each resumes from its newest checkpoint,
        with all its restarts, and on any agent: log policies exclude agents only until here."""
        values = {
            "restarts": 0,
            "system_failures": 0,
            "retry_at": None,
            "exit_reason": None,
            "end_time": None,
            "invalid_hp": False,
            "closed": False,
            "progress": 0.0,
            "runner_state": "",
            "values_stale": True,
        }
        for start in {row.state for row in trials}:
            ids = [row.id for row in trials if row.state is start]
            await repository.MACHINE.move_many(
                session, self._clock, ids, start, TrialState.ACTIVE, Event(actor), **values
            )
        await policy_match_repository.void(session, [row.id for row in trials])
        notify(session, notifications.TRIALS, notifications.COLUMNS)

    async def stop_all(self, session: WriteSession, experiment_id: int, to: TrialState, actor: str) -> None:
        """Moves the experiment's live trials to a STOPPING state ``to`` in a constant number of statements."""
        starts = [state for state in TrialState if state.is_live and _may_stop(state, to)]
        await self._move_all(session, experiment_id, starts, to, actor)
        await self._end_live(session, experiment_id, to, _why_stopped(to, actor))

    async def _move_all(
        self,
        session: WriteSession,
        experiment_id: int,
        starts: Sequence[TrialState],
        to: TrialState,
        actor: str,
        **values: object,
    ) -> None:
        found = await repository.live_states(session, experiment_id)
        for start in starts:
            await repository.MACHINE.move_many(
                session, self._clock, found.get(start, []), start, to, Event(actor), **values
            )
        notify(session, notifications.TRIALS, notifications.experiment(experiment_id))

    async def _end_live(self, session: WriteSession, experiment_id: int, state: TrialState, why: str) -> None:
        """Ends the attempts of the trials in ``state``: pending ones in bulk, the others one by one."""
        live = await repository.live_allocations(session, experiment_id, state)
        waiting = [each for each, of in live if of is AllocationState.PENDING]
        if waiting:
            await self._managers.withdraw(session, await allocation_rows.pool_of(session, waiting[0]), waiting, why=why)
        for allocation_id, of in live:
            if of is not AllocationState.PENDING:
                await self._end_attempt(session, await allocation_rows.get(session, allocation_id), state, why)

    async def _end_attempt(self, session: WriteSession, live: AllocationRow, state: TrialState, why: str) -> None:
        if state in _KILLING:
            await self._managers.kill(session, live, why=why)
        else:
            await self._managers.preempt(session, live, why=why)

    async def stop(self, session: WriteSession, row: TrialRow, to: TrialState, actor: str, *, why: str = "") -> bool:
        """Moves a trial to one of the STOPPING states; returns False if it has ended. Ends it at once if nothing runs.

        ``why`` is shown to its owner, instead of who stopped it.
        """
        if not _may_stop(row.state, to):
            return False
        await repository.move(session, self._clock, row, to, actor=actor)
        live = await allocation_rows.live_of_task(session, row.task_id)
        if live is None:
            notify(session, notifications.TRIALS)
        else:
            await self._end_attempt(session, live, to, why or _why_stopped(to, actor))
            if why and to is TrialState.STOPPING_ERROR:
                await logs.say(session, row.task_id, live.id, f"the trial {why}", self._clock.now(), "ERROR")
        return True

    async def request_slots(self, session: WriteSession, rows: Sequence[TrialRow], experiment: ExperimentRow) -> None:
        """Requests slots for a new attempt of each trial; the trials belong to one experiment."""
        await self._slot_requests.add(session, rows, experiment)

    async def settle(
        self, session: WriteSession, row: TrialRow, experiment: ExperimentRow, ended: AllocationRow
    ) -> None:
        """Settles an ended allocation once: applies the outcome to its trial."""
        await self._settlement.settle(session, row, experiment, ended)

    async def kill_attempt(self, session: WriteSession, allocation: AllocationRow, why: str) -> None:
        """Ends an attempt; the outcome for its trial is decided at settlement."""
        await self._managers.kill(session, allocation, why=why)

    async def finish_stopped(self, session: WriteSession, trial_ids: Sequence[int]) -> None:
        """Ends the stopping trials whose attempts are settled, in a constant number of statements."""
        await self._settlement.finish_stopped(session, trial_ids)


_KILLING = frozenset({TrialState.STOPPING_KILLED, TrialState.STOPPING_ERROR})


def _may_stop(state: TrialState, to: TrialState) -> bool:
    """Returns False for a trial that has ended, or is stopping in a way that ``to`` does not override."""
    is_weaker = state.is_stopping and to is TrialState.STOPPING_CANCELED
    return to in ALLOWED[state] and not state.is_terminal and not is_weaker


def _why_stopped(to: TrialState, actor: str) -> str:
    """Returns why an attempt is to end, for its owner."""
    if to is TrialState.STOPPING_COMPLETED:
        return "stopped by the search"
    if to is TrialState.STOPPING_ERROR:
        return "stopped because the experiment failed"
    return f"{'killed' if to is TrialState.STOPPING_KILLED else 'canceled'} by {actor}"
