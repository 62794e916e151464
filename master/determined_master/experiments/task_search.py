"""Searches whose method runs in a task: hands out their events, and stores what the task makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from determined.errors import BadRequest, Conflict, Forbidden
from determined.states import TokenScope
from determined_master.auth.principal import Principal
from determined_master.clock import Clock
from determined_master.db.models import ExperimentRow
from determined_master.db.session import Database, ReadSession, WriteSession
from determined_master.db.statements.batches import batched
from determined_master.experiments import repository
from determined_master.experiments.hp_search import event_of
from determined_master.experiments.search_actions import SearchActions, in_lots
from determined_master.searcher.actions import Action, Create, Stop
from determined_master.searcher.task_method import (
    FAILURE,
    FIRST,
    MAX_EVENTS_A_STEP,
    STATE,
    STEPS,
    STORED_BY,
    RefusedActions,
    TaskEvents,
    checked_actions,
    task_events,
    task_progress,
    to_json,
)
from determined_master.tasks import repository as tasks
from determined_master.trials import repository as trial_rows
from determined_master.trials import search_event_repository
from determined_master.trials.search_event_repository import SearchEvent
from determined_master.trials.service import Trials
from determined_master.trials.task_name import task_name

MAX_IDS_A_STATEMENT = 10_000


@dataclass(frozen=True)
class Start:
    """What a task needs to run the method. ``snapshot`` is None before the first step."""

    config: dict[str, Any]
    cursor: int
    snapshot: dict[str, Any] | None
    is_over: bool


@dataclass(frozen=True)
class News:
    """Events after a cursor, up to ``to``."""

    to: int
    events: list[dict[str, Any]]
    is_over: bool


@dataclass(frozen=True)
class TaskStep:
    """What a task sends after the events from ``cursor`` to ``to``. ``progress`` is None if it does not know it."""

    cursor: int
    to: int
    actions: Sequence[Action]
    snapshot: dict[str, Any]
    progress: float | None


class TaskSearch:
    """Only the newest task of the experiment's search may call the methods. Each is one transaction, and a step of very
    many actions several: the first keeps all of them."""

    def __init__(self, database: Database, clock: Clock, trials: Trials) -> None:
        self._database = database
        self._actions = SearchActions(clock, trials)

    async def start(self, experiment_id: int, principal: Principal) -> Start:
        async with self._database.read() as session:
            row = await _own_experiment(session, experiment_id, principal)
        return Start(row.config, row.searcher_cursor, row.searcher_snapshot.get(STATE), _is_over(row))

    async def news(self, experiment_id: int, principal: Principal, cursor: int) -> News:
        """Returns the next events. Raises Conflict if the search is not at ``cursor``."""
        async with self._database.read() as session:
            row = await _own_experiment(session, experiment_id, principal)
            if row.searcher_cursor != cursor:
                raise _elsewhere(row, cursor)
            found = await search_event_repository.events_after(session, experiment_id, cursor, limit=MAX_EVENTS_A_STEP)
            events = _read(row, found)
        return News(found[-1].id if found else cursor, events.values, _is_over(row))

    async def store(self, experiment_id: int, principal: Principal, step: TaskStep) -> bool:
        """Applies a step once, and returns True if the search is over.

        Raises Conflict if the search is not at its cursor, and BadRequest for actions that the search may not take,
        which end the experiment.
        """
        if step.to <= step.cursor:
            raise BadRequest(f"a step has to lead beyond event {step.cursor}, not to {step.to}")
        refusal = ""
        # Of a step that was interrupted.
        await self._apply_kept(experiment_id, principal)
        async with self._database.write() as session:
            row = await _own_experiment(session, experiment_id, principal)
            stored_by = row.searcher_snapshot.get(STORED_BY)
            if row.searcher_cursor == step.to and stored_by == principal.allocation_id:
                return _is_over(row)  # a repeated request, whose answer was lost
            if await search_event_repository.next_actions(session, experiment_id) is not None:
                raise Conflict(f"another step of the search of experiment {experiment_id} is being stored")
            if row.searcher_cursor != step.cursor:
                raise _elsewhere(row, step.cursor)
            try:
                await self._apply(session, row, principal, step)
            except RefusedActions as error:
                refusal = f"the search method was refused: {error}"
                await self._actions.fail(session, row, refusal)
            is_over = _is_over(row)
        if refusal:
            raise BadRequest(refusal)
        return await self._apply_kept(experiment_id, principal) or is_over

    async def fail(self, experiment_id: int, principal: Principal, reason: str, *, is_final: bool) -> None:
        """Keeps why the method failed, for the time when its task has failed too often. A final failure ends the
        experiment at once."""
        async with self._database.write() as session:
            row = await _own_experiment(session, experiment_id, principal)
            text = f"the search method failed: {reason}"
            await repository.change(session, row, searcher_snapshot=row.searcher_snapshot | {FAILURE: text})
            if is_final:
                await self._actions.fail(session, row, text)

    async def give_up(self, experiment_id: int, reason: str) -> None:
        """Ends the experiment of a search whose task has failed too often."""
        async with self._database.write() as session:
            row = await repository.get(session, experiment_id)
            await self._actions.fail(session, row, str(row.searcher_snapshot.get(FAILURE) or reason))

    async def _apply_kept(self, experiment_id: int, principal: Principal) -> bool:
        """Applies the lots of actions that are kept. Returns True if the search is over."""
        while True:
            async with self._database.read() as session:
                row = await _own_experiment(session, experiment_id, principal)
                if await search_event_repository.next_actions(session, experiment_id) is None:
                    return _is_over(row)
            async with self._database.write() as session:
                await self._actions.apply_kept_lot(session, await repository.get(session, experiment_id))

    async def _apply(self, session: WriteSession, row: ExperimentRow, principal: Principal, step: TaskStep) -> None:
        found = await search_event_repository.events_after(session, row.id, step.cursor, to=step.to)
        if step.to != (found[-1].id if found else FIRST):
            raise BadRequest(f"experiment {row.id} has no event {step.to}")
        read = _read(row, found)
        total = await trial_rows.count(session, row.id)
        actions = checked_actions(
            step.actions,
            hyperparameters=row.config["hyperparameters"],
            max_trials=row.config["searcher"]["max_trials"],
            created=total,
            known=await _known(session, row.id, step.actions),
        )
        progress = step.progress
        if progress is None:
            live = await trial_rows.live(session, row.id)
            progress = task_progress(row.config["searcher"]["max_trials"], total - live.number, live.progress)
        await repository.change(
            session,
            row,
            searcher_cursor=step.to,
            searcher_snapshot={STATE: step.snapshot, STORED_BY: principal.allocation_id, STEPS: read.steps},
            progress=row.progress if row.state.is_stopping or row.state.is_terminal else progress,
        )
        await search_event_repository.mark_processed(session, row.id, step.to)
        first, *others = in_lots([*read.own_actions, *actions])
        await search_event_repository.add_actions(
            session, row.id, [[to_json(action) for action in lot] for lot in others]
        )
        await self._actions.apply(session, row, first)
        task = await tasks.get(session, principal.task_id or "")
        if task.failures:
            await tasks.change(session, task, failures=0)


async def _own_experiment(session: ReadSession, experiment_id: int, principal: Principal) -> ExperimentRow:
    """Returns the experiment. Raises Forbidden unless the caller is the task of its search."""
    task = await tasks.get(session, principal.task_id or "")
    if principal.scope is not TokenScope.SEARCH or task.experiment_id != experiment_id:
        raise Forbidden(f"this task token may not act for the search of experiment {experiment_id}")
    return await repository.get(session, experiment_id)


def _read(row: ExperimentRow, found: Sequence[SearchEvent]) -> TaskEvents:
    return task_events(tuple(map(event_of, found)), row.config["searcher"], row.searcher_snapshot)


async def _known(session: ReadSession, experiment_id: int, actions: Sequence[Action]) -> set[str]:
    """Returns those request ids of the actions that trials of the experiment have."""
    wanted = sorted({action.request_id for action in actions if isinstance(action, Create | Stop)})
    known: set[str] = set()
    for batch in batched(wanted, MAX_IDS_A_STATEMENT):
        found = await tasks.jobs_of(session, [task_name(experiment_id, request_id) for request_id in batch])
        known |= {request_id for request_id in batch if task_name(experiment_id, request_id) in found}
    return known


def _elsewhere(row: ExperimentRow, cursor: int) -> Conflict:
    return Conflict(f"the search of experiment {row.id} is at event {row.searcher_cursor}, not {cursor}")


def _is_over(row: ExperimentRow) -> bool:
    return row.state.is_stopping or row.state.is_terminal
