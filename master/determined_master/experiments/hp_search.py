"""Runs the search of each experiment over its unprocessed events: load, decide (pure), apply (guarded)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from determined.config.search_plan import IN_TASK
from determined.errors import Conflict
from determined.states import ExperimentState
from determined_master import notifications
from determined_master.clock import Clock
from determined_master.db.models import ExperimentRow
from determined_master.db.session import Database, ReadSession, WriteSession, after_commit, notify
from determined_master.events import repository as events
from determined_master.experiment_index import indexer
from determined_master.experiments import repository
from determined_master.experiments.kept_searches import KeptMethod, KeptSearches
from determined_master.experiments.repository import SearchPosition
from determined_master.experiments.search_actions import SearchActions, weight
from determined_master.experiments.states import TERMINAL
from determined_master.searcher.actions import (
    Action,
    Create,
    Event,
    Keep,
    LimitsChanged,
    LotDue,
    Resume,
    ResumeDue,
    SearchContinued,
    Shutdown,
    TrialClosed,
    TrialValidated,
)
from determined_master.searcher.method import TRIALS_A_LOT, SearchMethod
from determined_master.searcher.methods import make
from determined_master.trials import repository as trial_rows
from determined_master.trials import search_event_repository
from determined_master.trials.search_event_repository import SearchEvent
from determined_master.trials.service import Trials

logger = logging.getLogger(__name__)


EVENTS_A_SNAPSHOT = 64
"""A snapshot of a long search is large, so it is stored after this many events. Those after it are processed again when
the search is restored, which leads to the same state, because a method depends on nothing else."""
MAX_FOLLOWED = 100
"""Events that are processed in the transaction that has stored the last of them."""
EVENTS_A_STEP = 500
"""Events that a search processes in one transaction; it stops earlier where they ask for a lot of actions."""
_CURSOR = "cursor"
"""Key of a snapshot: the cursor at which it was taken. Snapshots of earlier versions have none: they are current."""


@dataclass(frozen=True)
class SearchView:
    """Input of a decision. ``cursors``: the id of each event in ``news``. ``cursor``: that of the last one, or of the
    search. ``live_progress``: of the trials that have not ended, added up."""

    news: tuple[Event | ResumeDue, ...]
    cursors: tuple[int, ...]
    cursor: int
    live_progress: float
    is_past: bool = False
    """True if the search was continued after all of these events."""


@dataclass(frozen=True)
class Decision:
    """What a search wants after the events ``processed``, the last of which is ``cursor``."""

    actions: list[Action]
    processed: tuple[Event | ResumeDue, ...]
    cursor: int
    progress: float


class SearchFailed(Conflict):
    """A search method cannot process an event, also not when it is asked again."""


class SearchStep(NamedTuple):
    """What a search did in the transaction that stored its events."""

    created: list[int]
    """Ids of trials."""
    only_creates: bool
    """True if it processed all events, stopped no trial and did not end the experiment."""


class Search:
    """Runs searches. One transaction writes cursor, actions and sometimes the snapshot if the cursor is unchanged; the
    next wake repairs a crash between a report and its decision."""

    def __init__(self, database: Database, clock: Clock, trials: Trials, kept: KeptSearches) -> None:
        self._database = database
        self._clock = clock
        self._actions = SearchActions(clock, trials)
        self.kept = kept

    async def advance(self, experiment_id: int) -> None:
        """Processes the events of an experiment. One whose method fails ends with the error; one that is stopping ends
        as it was asked to."""
        try:
            await self._advance(experiment_id)
        except SearchFailed as error:
            logger.exception("the search of experiment %d failed", experiment_id)
            await self._give_up(experiment_id, error.message)

    async def _advance(self, experiment_id: int) -> None:
        kept = self.kept.pop(experiment_id)
        async with self._database.read() as session:
            at = await repository.search_position(session, experiment_id)
            is_own = at is not None and at.searcher_type not in IN_TASK
            if at is not None and is_own and (kept is None or kept.cursor != at.cursor):
                kept = await restored(session, await repository.get(session, experiment_id))
            cursor = at.cursor if at else 0
            news = await search_event_repository.events_after(session, experiment_id, cursor, limit=EVENTS_A_STEP)
            view = view_of(news, cursor, at.live_progress if at else 0.0)
            if len(news) == EVENTS_A_STEP:
                is_past = await search_event_repository.is_continued_after(session, experiment_id, news[-1].id)
                view = replace(view, is_past=is_past)
            has_lots = not is_own and await search_event_repository.next_actions(session, experiment_id) is not None
        if at is not None and not is_own:
            await self._finish_task_search(experiment_id, at, news, has_lots=has_lots)
            return
        if at is None or kept is None:
            async with self._database.write() as session:
                await search_event_repository.drop_some(session, experiment_id, EVENTS_A_STEP)
                notify(session, notifications.SEARCH)
            return
        decision = decide(kept.method, view)
        async with self._database.write(is_synced=_is_last(at.state, decision)) as session:
            is_applied = await self._pass(session, experiment_id, at, kept, decision)
            if not is_applied:
                row = await repository.get(session, experiment_id)
                # Its state too: what a search wants while it is being stopped would be lost.
                is_applied = row.searcher_cursor == kept.cursor and row.state is at.state
                if is_applied:
                    await self._apply(session, row, kept, decision)
            if not is_applied or decision.cursor < view.cursor or len(news) == EVENTS_A_STEP:
                notify(session, notifications.SEARCH)
        # After the commit: a method that has processed events that were rolled back is not kept.
        if is_applied and not _is_last(at.state, decision):
            self.kept.put(experiment_id, kept)

    async def _give_up(self, experiment_id: int, reason: str) -> None:
        async with self._database.write() as session:
            row = await repository.get(session, experiment_id)
            await self._actions.fail(session, row, reason)
            news = await search_event_repository.events_after(
                session, experiment_id, row.searcher_cursor, limit=EVENTS_A_STEP
            )
            await search_event_repository.mark_processed(
                session, experiment_id, news[-1].id if news else row.searcher_cursor
            )
            await self._finish(session, row)
            if len(news) == EVENTS_A_STEP:
                notify(session, notifications.SEARCH)

    async def follow(self, session: WriteSession, row: ExperimentRow) -> SearchStep | None:
        """Processes the events of an experiment in the transaction that has stored them.

        Returns None where that is left to the loop: there are many events, the method runs in a task, or it fails,
        which the loop reports.
        """
        if row.searcher_type in IN_TASK or row.state is not ExperimentState.ACTIVE:
            return None
        kept = self.kept.pop(row.id)
        try:
            if kept is None or kept.cursor != row.searcher_cursor:
                kept = await restored(session, row)
            news = await search_event_repository.events_after(session, row.id, kept.cursor, limit=MAX_FOLLOWED + 1)
            if len(news) > MAX_FOLLOWED:
                return None
            view = view_of(news, kept.cursor, (await trial_rows.live(session, row.id)).progress)
            decision = decide(kept.method, view)
        except Exception as error:
            logger.info("the search of experiment %d failed; trying again: %s", row.id, error)
            return None
        created = await self._apply(session, row, kept, decision)
        if not _is_last(row.state, decision):
            after_commit(session, partial(self.kept.put, row.id, kept))
        if decision.cursor < view.cursor:
            return None
        return SearchStep(created, all(isinstance(action, Create | Keep) for action in decision.actions))

    async def _pass(
        self,
        session: WriteSession,
        experiment_id: int,
        at: SearchPosition,
        kept: KeptMethod,
        decision: Decision,
    ) -> bool:
        """Applies a decision that nothing follows from, without a look at the experiment. Returns False for others."""
        has_work = bool(decision.actions) or at.state.is_stopping or _is_stored(kept, decision)
        if has_work or not await repository.pass_events(
            session, experiment_id, at, searcher_cursor=decision.cursor, progress=decision.progress
        ):
            return False
        kept.cursor, kept.unstored = decision.cursor, kept.unstored + len(decision.processed)
        await search_event_repository.mark_processed(session, experiment_id, decision.cursor)
        return True

    async def _apply(
        self, session: WriteSession, row: ExperimentRow, kept: KeptMethod, decision: Decision
    ) -> list[int]:
        """Applies a decision whose cursor is that of the experiment. Returns the ids of the created trials."""
        is_stored = _is_stored(kept, decision)
        kept.cursor = decision.cursor
        kept.unstored += len(decision.processed)
        values: dict[str, Any] = {}
        if is_stored:
            values["searcher_snapshot"] = snapshot_of(kept.method, decision.cursor)
            kept.stored, kept.unstored = decision.cursor, 0
        await repository.change(
            session,
            row,
            searcher_cursor=decision.cursor,
            progress=row.progress if _is_cut_short(row, decision) else decision.progress,
            **values,
        )
        await search_event_repository.mark_processed(session, row.id, decision.cursor)
        created = await self._actions.apply(session, row, decision.actions)
        await self._finish(session, row)
        return created

    async def _finish_task_search(
        self, experiment_id: int, at: SearchPosition, news: Sequence[SearchEvent], *, has_lots: bool
    ) -> None:
        """Ends the experiment of a search whose method runs in a task; while it is active, its task reads the events
        (experiments/task_search.py). Applies what a step has kept, where its request has ended before."""
        if has_lots:
            async with self._database.write() as session:
                await self._actions.apply_kept_lot(session, await repository.get(session, experiment_id))
                notify(session, notifications.SEARCH)
            return
        if not at.state.is_stopping and not at.state.is_terminal:
            return
        async with self._database.write() as session:
            if news:
                await search_event_repository.mark_processed(session, experiment_id, news[-1].id)
            if len(news) == EVENTS_A_STEP:
                notify(session, notifications.SEARCH)
            await self._finish(session, await repository.get(session, experiment_id))

    async def _finish(self, session: WriteSession, row: ExperimentRow) -> None:
        if not row.state.is_stopping or await trial_rows.has_live(session, row.id):
            return
        to = TERMINAL[row.state]
        progress = 1.0 if to is ExperimentState.COMPLETED else row.progress
        last = await events.last_move(session, "experiment", row.id)
        message = str(last.payload.get("message", "")) if last else ""
        end = self._clock.now()
        await repository.move(session, self._clock, row, to, message=message, end_time=end, progress=progress)
        await indexer.keep_ended(session, row.id)
        notify(session, notifications.DELETE)


def _is_cut_short(row: ExperimentRow, decision: Decision) -> bool:
    """Returns True for a failed or canceled end: its closed trials are done, but people are not shown 100 %."""
    stopped = row.state.is_stopping and row.state is not ExperimentState.STOPPING_COMPLETED
    return stopped or any(isinstance(a, Shutdown) and (a.failed or a.canceled) for a in decision.actions)


def _is_last(state: ExperimentState, decision: Decision) -> bool:
    """Returns True for a decision that may end the experiment. Its commit waits for the disk; the others are made again
    from their events after a power failure."""
    return state.is_stopping or any(isinstance(action, Shutdown) for action in decision.actions)


def _is_stored(kept: KeptMethod, decision: Decision) -> bool:
    """Returns True where the snapshot is stored: after some events, at the end, where a search continues after it, and
    with limits, which the page shows."""
    if kept.unstored + len(decision.processed) >= EVENTS_A_SNAPSHOT:
        return True
    changes = (isinstance(event, LimitsChanged | SearchContinued) for event in decision.processed)
    return any(changes) or any(isinstance(action, Shutdown) for action in decision.actions)


def snapshot_of(method: SearchMethod, cursor: int) -> dict[str, Any]:
    """Returns what is stored of a search after the event ``cursor``."""
    return method.snapshot() | {_CURSOR: cursor}


async def restored(session: ReadSession, row: ExperimentRow) -> KeptMethod:
    """Returns the method as it was at the row's cursor: the snapshot, and the events since."""
    method = make(row.config, row.searcher_snapshot)
    stored = row.searcher_snapshot.get(_CURSOR, row.searcher_cursor)
    since = await search_event_repository.events_after(session, row.id, stored, to=row.searcher_cursor)
    for event in map(event_of, since):
        _wanted(method, event)  # its actions were applied with the cursor
    return KeptMethod(method, row.searcher_cursor, stored, len(since))


async def continued(session: ReadSession, row: ExperimentRow, event: SearchContinued) -> list[Action]:
    """Returns what a search that has ended would do if it were continued."""
    kept = await restored(session, row)
    news = await search_event_repository.events_after(session, row.id, row.searcher_cursor)
    for event_before in map(event_of, news):
        _wanted(kept.method, event_before)
    return kept.method.on_event(event)


def decide(method: SearchMethod, view: SearchView) -> Decision:
    """Returns what the search wants after ``method`` has processed the new events in order, or the first of them: those
    after a lot of actions are left to the next transaction."""
    actions: list[Action] = []
    count = 0
    continued = max((n for n, event in enumerate(view.news) if isinstance(event, SearchContinued)), default=0)
    for event in view.news:
        if sum(map(weight, actions)) >= TRIALS_A_LOT:
            break
        wanted = _wanted(method, event)
        # What it wanted at its former end, as to shut down, does not concern the search that was continued since.
        if not view.is_past and count >= continued:
            actions += wanted
        count += 1
    cursor = view.cursor if count == len(view.news) else view.cursors[count - 1]
    return Decision(actions, view.news[:count], cursor, method.progress(view.live_progress))


def _wanted(method: SearchMethod, event: Event | ResumeDue) -> list[Action]:
    """Returns the actions that follow from an event. That trials train on was decided when the search was continued.
    Raises SearchFailed."""
    if isinstance(event, ResumeDue):
        return [Resume(event.after, event.to, event.actor)]
    try:
        return method.on_event(event)
    except Exception as error:
        raise SearchFailed(f"the search method failed: {type(error).__name__}: {error}") from error


def view_of(news: Sequence[SearchEvent], cursor: int, live_progress: float) -> SearchView:
    """Returns the view of a search whose events after ``cursor`` are ``news``."""
    return SearchView(
        news=tuple(map(event_of, news)),
        cursors=tuple(event.id for event in news),
        cursor=news[-1].id if news else cursor,
        live_progress=live_progress,
    )


def event_of(event: SearchEvent) -> Event | ResumeDue:
    """Returns what a search method or its experiment has to process. Raises LookupError for a trial that is gone."""
    if event.kind == "limits":
        return LimitsChanged(**event.payload)
    if event.kind == "continued":
        return SearchContinued(tuple(event.payload["resumed"]), tuple(event.payload["known"]))
    if event.kind == search_event_repository.LOT:
        return LotDue()
    if event.kind == search_event_repository.RESUME:
        return ResumeDue(**event.payload)
    if event.request_id is None:
        raise LookupError(f"search event {event.id} is of trial {event.trial_id}, which does not exist")
    if event.kind == "closed":
        return TrialClosed(event.request_id, event.payload["reason"])
    # Earlier versions stored validations without a step.
    return TrialValidated(event.request_id, event.payload["steps"] or 0, event.payload["metrics"])
