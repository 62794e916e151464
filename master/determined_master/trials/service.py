"""Life cycle of trials: create, pause, activate, stop, request slots, settle ended attempts."""

from collections.abc import Callable, Sequence
from functools import partial

from determined.states import AllocationState, ExperimentState, TrialState
from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.db.session import WriteSession, after_commit, notify
from determined_master.events.repository import SYSTEM
from determined_master.events.state_machine import Event
from determined_master.logs import policy_match_repository
from determined_master.logs import repository as logs
from determined_master.metrics import health
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.searcher.actions import Create, Resume
from determined_master.trials import lagging_queries, repository
from determined_master.trials.lagging_queries import LaggingTrial
from determined_master.trials.log_policies import LogPolicies
from determined_master.trials.search_event_repository import RESUME, add_event
from determined_master.trials.settlement import Settlement
from determined_master.trials.slot_requests import SlotRequests
from determined_master.trials.states import following_state, may_stop
from determined_master.trials.task_name import task_name


class Trials:
    """Every method works inside the caller's session."""

    def __init__(
        self,
        clock: Clock,
        managers: ResourceManagers,
        new_run: Callable[[Sequence[int]], None],
        *,
        hook_in: Callable[[str], str] = lambda _pool: "",
        interface_in: Callable[[str], str] = lambda _pool: "",
        cluster_storage: str = "",
        launch_error: bool = True,
    ) -> None:
        """``new_run`` is called with the ids of trials whose run has changed, once that is committed."""
        self._clock = clock
        self._managers = managers
        self.behind: set[int] = set()
        """Experiments some of whose trials are not in the state yet that follows from theirs. In memory: after a
        restart each live experiment is looked at."""
        self._settlement = Settlement(clock, LogPolicies(managers, ends_impossible=launch_error))
        self._slot_requests = SlotRequests(
            clock,
            managers,
            new_run,
            hook_in=hook_in,
            interface_in=interface_in,
            cluster_storage=cluster_storage,
        )

    async def create(
        self,
        session: WriteSession,
        experiment: ExperimentRow,
        actions: Sequence[Create],
        *,
        warm_start: str | None = None,
    ) -> list[int]:
        """Creates trials of one experiment, in a constant number of statements if there are many. Returns their ids."""
        rows = [
            {
                "experiment_id": experiment.id,
                "request_id": action.request_id,
                "task_id": task_name(experiment.id, action.request_id),
                "state": TrialState.PAUSED if experiment.state is ExperimentState.PAUSED else TrialState.ACTIVE,
                "hparams": action.hparams,
                "seed": action.seed,
                "start_time": self._clock.now(),
                "warm_start_checkpoint": warm_start,
            }
            for action in actions
        ]
        ids = await repository.add(session, experiment, rows)
        notify(session, notifications.TRIALS, notifications.COLUMNS)
        return ids

    async def follow_experiment(
        self,
        session: WriteSession,
        experiment: ExperimentRow,
        actor: str,
        lagging: Sequence[LaggingTrial] | None = None,
    ) -> None:
        """Moves trials whose experiment was paused, activated or stopped by ``actor`` into the state that follows.

        A constant number of statements moves a lot of those that hold no slots, each of the others takes a few. Where
        more are left, a loop goes on with them (loops/trial_states.py). ``lagging``: found before; looked up if None.
        """
        to = following_state(experiment.state)
        if to is None:
            return
        if lagging is None:
            lagging = await lagging_queries.lagging(session, experiment.id, to)
        values: dict[str, object] = {"retry_at": None} if to is TrialState.ACTIVE else {}
        for start in dict.fromkeys(trial.state for trial in lagging):
            ids = [trial.trial_id for trial in lagging if trial.state is start]
            await repository.MACHINE.move_many(session, self._clock, ids, start, to, Event(actor), **values)
        if to is not TrialState.ACTIVE:
            notify(session, notifications.ENVIRONMENTS)
            await self._end_attempts(session, [trial.trial_id for trial in lagging], to, _why(to, actor))
        notify(session, notifications.TRIALS, notifications.experiment(experiment.id))
        if lagging_queries.may_be_more(lagging):
            after_commit(session, partial(self.behind.add, experiment.id))
            notify(session, notifications.TRIAL_STATES)

    async def resume_lot(self, session: WriteSession, experiment: ExperimentRow, due: Resume) -> None:
        """Lets a lot of the ended trials of a continued experiment train on, in a constant number of statements. A
        search event is for the others.

        Each resumes from its newest checkpoint, with all its restarts, and on any agent: log policies exclude agents
        only until here. Attempts without a checkpoint are counted anew.
        """
        is_single = experiment.config["searcher"]["name"] == "single"
        trials = await repository.resumable(session, experiment.id, due.after, due.to, is_single=is_single)
        values = {
            "restarts": 0,
            "system_failures": 0,
            "limits_without_checkpoint": 0,
            "retry_at": None,
            "exit_reason": None,
            "end_time": None,
            "invalid_hp": False,
            "must_stop": False,
            "health_warning": None,
            "closed": False,
            "progress": 0.0,
            "runner_state": "",
            "values_stale": True,
        }
        event = Event(due.actor)
        for start in dict.fromkeys(trial.state for trial in trials):
            ids = [trial.trial_id for trial in trials if trial.state is start]
            await repository.MACHINE.move_many(session, self._clock, ids, start, TrialState.ACTIVE, event, **values)
        await policy_match_repository.void(session, [trial.trial_id for trial in trials])
        if len(trials) == repository.LOT:
            payload = {"after": trials[-1].trial_id, "to": due.to, "actor": due.actor}
            await add_event(session, experiment.id, 0, RESUME, payload)
        if experiment.state is ExperimentState.PAUSED:
            await self.follow_experiment(session, experiment, due.actor)
        notify(session, notifications.TRIALS, notifications.COLUMNS, notifications.SEARCH)

    async def _end_attempts(self, session: WriteSession, trial_ids: Sequence[int], state: TrialState, why: str) -> None:
        """Ends the attempts of those of the trials that are in ``state``: pending ones in bulk, others one by one."""
        live = await lagging_queries.live_allocations(session, trial_ids, state)
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
        if not may_stop(row.state, to):
            return False
        await repository.move(session, self._clock, row, to, actor=actor)
        live = await allocation_rows.live_of_task(session, row.task_id)
        if live is None:
            notify(session, notifications.TRIALS, notifications.ENVIRONMENTS)
        else:
            await self._end_attempt(session, live, to, why or _why(to, actor))
            if why and to is TrialState.STOPPING_ERROR:
                await logs.say(session, row.task_id, live.id, f"the trial {why}", self._clock.now(), "ERROR")
        return True

    async def stop_unhealthy(self, session: WriteSession, row: TrialRow) -> None:
        """Ends a trial because of a metric that is not finite, without a restart."""
        reason = health.stop_reason(row.health_warning or "a metric is not finite")
        live = await allocation_rows.live_of_task(session, row.task_id)
        stopped = await self.stop(session, row, TrialState.STOPPING_ERROR, SYSTEM, why=f"was stopped: {reason}")
        if stopped and live is not None:
            await allocation_rows.change(session, live, failure=reason)

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


def _why(to: TrialState, actor: str) -> str:
    """Returns why an attempt is to end, for its owner."""
    if to is TrialState.PAUSED:
        return f"paused by {actor}"
    if to is TrialState.STOPPING_COMPLETED:
        return "stopped by the search"
    if to is TrialState.STOPPING_ERROR:
        return "stopped because the experiment failed"
    return f"{'killed' if to is TrialState.STOPPING_KILLED else 'canceled'} by {actor}"
