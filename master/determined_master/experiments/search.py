"""Runs the search of each experiment over its unprocessed events: load, decide (pure), apply (guarded)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from determined.link.isolation import Isolation
from determined.states import ExperimentState
from determined_master import notifications
from determined_master.clock import Clock
from determined_master.db.models import ExperimentRow, SearchEventRow
from determined_master.db.session import Database, WriteSession, notify
from determined_master.events import repository as events
from determined_master.experiments import repository
from determined_master.experiments.search_actions import SearchActions
from determined_master.experiments.states import TERMINAL
from determined_master.searcher.actions import Action, Event, LimitsChanged, Shutdown, TrialClosed, TrialValidated
from determined_master.searcher.methods import make
from determined_master.trials import repository as trial_rows
from determined_master.trials import search_event_repository
from determined_master.trials.repository import RequestedTrial
from determined_master.trials.service import Trials

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchView:
    """Input of a decision; ``cursor`` is the id of the last event in ``news``, ``progress`` is by request id."""

    config: Mapping[str, Any]
    snapshot: dict[str, Any] | None
    news: tuple[Event, ...]
    cursor: int
    progress: Mapping[str, float]


@dataclass(frozen=True)
class Decision:
    actions: list[Action]
    snapshot: dict[str, Any]
    cursor: int
    progress: float


class Search:
    """Runs searches. One transaction writes cursor, snapshot and actions if the cursor is unchanged; the next
    wake repairs a crash between a report and its decision."""

    def __init__(self, database: Database, clock: Clock, trials: Trials) -> None:
        self._database = database
        self._clock = clock
        self._actions = SearchActions(clock, trials)
        self._items = Isolation("search", logger)

    async def tick(self) -> float | None:
        async with self._database.read() as session:
            due = set(await search_event_repository.experiments_with_events(session))
            due |= set(await repository.stopping_or_started(session))
        for experiment_id in sorted(due):
            await self._items.run("experiment", experiment_id, partial(self.advance, experiment_id))
        return self._items.seconds_left()

    async def advance(self, experiment_id: int) -> None:
        async with self._database.read() as session:
            row = await repository.find(session, experiment_id)
            news = await search_event_repository.events_after(session, experiment_id, row.searcher_cursor if row else 0)
            trials = await trial_rows.requested(session, experiment_id, {event.trial_id for event in news})
        if row is None:
            async with self._database.write() as session:
                await search_event_repository.drop(session, experiment_id)
            return
        decision = decide(view_of(row, news, trials))
        async with self._database.write() as session:
            await self._apply(session, experiment_id, row.searcher_cursor, decision)

    async def _apply(self, session: WriteSession, experiment_id: int, cursor: int, decision: Decision) -> None:
        row = await repository.get(session, experiment_id)
        if row.searcher_cursor != cursor:
            notify(session, notifications.SEARCH)
            return
        await repository.change(
            session,
            row,
            searcher_cursor=decision.cursor,
            searcher_snapshot=decision.snapshot,
            progress=row.progress if _is_cut_short(row, decision) else decision.progress,
        )
        await search_event_repository.mark_processed(session, experiment_id, decision.cursor)
        await self._actions.apply(session, row, decision.actions)
        await self._finish(session, row)

    async def _finish(self, session: WriteSession, row: ExperimentRow) -> None:
        if not row.state.is_stopping or await trial_rows.live_states(session, row.id):
            return
        to = TERMINAL[row.state]
        progress = 1.0 if to is ExperimentState.COMPLETED else row.progress
        last = await events.last_move(session, "experiment", row.id)
        message = str(last.payload.get("message", "")) if last else ""
        end = self._clock.now()
        await repository.move(session, self._clock, row, to, message=message, end_time=end, progress=progress)
        notify(session, notifications.DELETE)


def _is_cut_short(row: ExperimentRow, decision: Decision) -> bool:
    """Returns True for a failed or canceled end: its closed trials are done, but people are not shown 100 %."""
    stopped = row.state.is_stopping and row.state is not ExperimentState.STOPPING_COMPLETED
    return stopped or any(isinstance(a, Shutdown) and (a.failed or a.canceled) for a in decision.actions)


def decide(view: SearchView) -> Decision:
    """Returns what the search wants after processing the new events in order. Pure."""
    search = make(view.config, view.snapshot)
    actions = [action for event in view.news for action in search.on_event(event)]
    return Decision(actions, search.snapshot(), view.cursor, search.progress(view.progress))


def view_of(row: ExperimentRow, news: Sequence[SearchEventRow], trials: Sequence[RequestedTrial]) -> SearchView:
    """Returns the view of an experiment whose events after its cursor are ``news``."""
    request_ids = {trial.trial_id: trial.request_id for trial in trials}
    return SearchView(
        config=row.config,
        snapshot=row.searcher_snapshot,
        news=tuple(_event(event, request_ids) for event in news),
        cursor=news[-1].id if news else row.searcher_cursor,
        progress={trial.request_id: trial.progress for trial in trials},
    )


def _event(event: SearchEventRow, request_ids: Mapping[int, str]) -> Event:
    if event.kind == "limits":
        return LimitsChanged(**event.payload)
    request_id = request_ids[event.trial_id]
    if event.kind == "closed":
        return TrialClosed(request_id, event.payload["reason"])
    return TrialValidated(request_id, event.payload["steps"], event.payload["metrics"])
