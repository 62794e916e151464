"""Applies the actions of a search, and records each decision as an event, in the caller's transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from determined.states import ExperimentState, TrialState
from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.clock import Clock
from determined_master.db.models import ExperimentRow, TrialRow
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.events import repository as events
from determined_master.experiments import repository
from determined_master.searcher.actions import Action, Create, CreateMore, Keep, Resume, RungResult, Shutdown, Stop
from determined_master.searcher.method import TRIALS_A_LOT
from determined_master.searcher.task_method import from_json
from determined_master.trials import repository as trial_rows
from determined_master.trials import search_event_repository
from determined_master.trials.service import Trials
from determined_master.trials.task_name import task_name

CREATIONS_A_STOP = 5
"""A trial that is stopped takes several statements, one that is created a part of a few."""
Decided = tuple[str, int, dict[str, Any]]
"""An event about a trial: its kind, the trial and the payload."""


class SearchActions:
    """Creates and stops trials for a search, and ends its experiment."""

    def __init__(self, clock: Clock, trials: Trials) -> None:
        self._clock = clock
        self._trials = trials

    async def apply(
        self, session: WriteSession, row: ExperimentRow, actions: Sequence[Action], *, warm_start: str | None = None
    ) -> list[int]:
        """Applies ``actions`` in order and returns the ids of the created trials.

        ``warm_start``: checkpoint of the first trials; later ones use the same.
        """
        created: list[int] = []
        decided: list[Decided] = []
        creates = any(isinstance(action, Create) for action in actions)
        if warm_start is None and creates and _has_warm_start(row):
            warm_start = await trial_rows.first_warm_start(session, row.id)
        for is_new, some in groupby(actions, lambda action: isinstance(action, Create)):
            if is_new:
                created += await self._create(session, row, some, decided, warm_start)
            else:
                await self._apply_others(session, row, some, decided)
        await events.record_all(session, self._clock, actor=events.SYSTEM, target_type="trial", rows=decided)
        return created

    async def _create(
        self,
        session: WriteSession,
        row: ExperimentRow,
        actions: Iterable[Action],
        decided: list[Decided],
        warm_start: str | None,
    ) -> Sequence[int]:
        if _is_over(row):
            return ()
        wanted = [action for action in actions if isinstance(action, Create)]
        ids = await self._trials.create(session, row, wanted, warm_start=warm_start)
        for trial_id, action in zip(ids, wanted, strict=True):
            if action.reason:
                decided.append(("created", trial_id, {"reason": action.reason}))
        return ids

    async def _apply_others(
        self, session: WriteSession, row: ExperimentRow, actions: Iterable[Action], decided: list[Decided]
    ) -> None:
        for action in actions:
            if isinstance(action, Keep):
                trial = await _trial_of(session, row, action)
                decided.append(("kept", trial.id, _payload(action.reason, action.result)))
            elif isinstance(action, Stop):
                trial = await _trial_of(session, row, action)
                to = TrialState.STOPPING_ERROR if action.failed else TrialState.STOPPING_COMPLETED
                if await self._trials.stop(session, trial, to, events.SYSTEM, why=action.reason):
                    decided.append(("stopped", trial.id, _payload(action.reason, action.result)))
            elif isinstance(action, CreateMore) and not _is_over(row):
                await search_event_repository.add_event(session, row.id, 0, search_event_repository.LOT, {})
                notify(session, notifications.SEARCH)
            elif isinstance(action, Resume) and not _is_over(row):
                await self._trials.resume_lot(session, row, action)
            elif isinstance(action, Shutdown) and not _is_over(row):
                await self._end(session, row, action)

    async def apply_kept_lot(self, session: WriteSession, row: ExperimentRow) -> bool:
        """Applies the next of the lots that a step of a search in a task has kept. Returns False if there is none."""
        lot = await search_event_repository.next_actions(session, row.id)
        if lot is None:
            return False
        await self.apply(session, row, [from_json(each) for each in lot.payload["actions"]])
        await search_event_repository.mark_one(session, lot.id)
        return True

    async def fail(self, session: WriteSession, row: ExperimentRow, reason: str) -> None:
        """Ends the experiment and its trials because its search method failed; no-op if it has ended or is stopping."""
        if not _is_over(row):
            await search_event_repository.drop_lots(session, row.id)
            await repository.move(session, self._clock, row, ExperimentState.STOPPING_ERROR, message=reason)
            await self._trials.follow_experiment(session, row, events.SYSTEM)
            notify(session, notifications.SEARCH, notifications.TRIALS)

    async def _end(self, session: WriteSession, row: ExperimentRow, action: Shutdown) -> None:
        message = action.reason
        if action.failed:
            await self.fail(session, row, message + (await _first_failure(session, row.id) if message else ""))
        else:
            to = ExperimentState.STOPPING_CANCELED if action.canceled else ExperimentState.STOPPING_COMPLETED
            await repository.move(session, self._clock, row, to, message=message)


def weight(action: Action) -> int:
    """Returns to how many creations of a trial an action is equal in the time that it takes."""
    if isinstance(action, Resume):
        return TRIALS_A_LOT
    return CREATIONS_A_STOP if isinstance(action, Stop) else 1


def in_lots(actions: Sequence[Action]) -> list[list[Action]]:
    """Returns the actions in lots, each for one transaction; at least one lot."""
    lots: list[list[Action]] = [[]]
    left = TRIALS_A_LOT
    for action in actions:
        if weight(action) > left and lots[-1]:
            lots.append([])
            left = TRIALS_A_LOT
        lots[-1].append(action)
        left -= weight(action)
    return lots


def _is_over(row: ExperimentRow) -> bool:
    return row.state.is_stopping or row.state.is_terminal


def _has_warm_start(row: ExperimentRow) -> bool:
    searcher = row.config["searcher"]
    return bool(searcher.get("source_trial_id") or searcher.get("source_checkpoint_uuid"))


async def _trial_of(session: ReadSession, row: ExperimentRow, action: Keep | Stop) -> TrialRow:
    return await trial_rows.get_by_task(session, task_name(row.id, action.request_id))


def _payload(reason: str, result: RungResult | None) -> dict[str, Any]:
    return {"reason": reason, **(asdict(result) if result else {})}


async def _first_failure(session: ReadSession, experiment_id: int) -> str:
    """Returns the cause of the first failed trial's newest failure, to follow a reason; nothing without one."""
    trials = await trial_rows.page(session, experiment_id, [TrialState.ERROR], limit=1)
    failures = await allocation_rows.newest_failures(session, [trial.task_id for trial in trials])
    return "".join(f"; trial {trial.id}: {failures[trial.task_id].failure}" for trial in trials if failures)
