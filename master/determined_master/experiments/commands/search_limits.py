"""Changes the number of trials, and of concurrent trials, of a running search."""

from dataclasses import asdict
from typing import Any

from determined.errors import BadRequest, PreconditionFailed
from determined.states import state_clause
from determined_master import notifications
from determined_master.db.models import ExperimentRow
from determined_master.db.session import WriteSession, notify
from determined_master.searcher.actions import LimitsChanged
from determined_master.trials import search_event_repository

MAX_TRIALS = 2**24 - 1
_MINIMA = {"max_trials": 1, "max_concurrent_trials": 0}
_FIXED = {
    ("single", "max_trials"): "a single search has one trial",
    ("single", "max_concurrent_trials"): "a single search has one trial",
    ("grid", "max_trials"): "a grid search tries every point",
    ("list", "max_trials"): "a list search runs each of its trials",
}


async def change_limits(session: WriteSession, row: ExperimentRow, limits: dict[str, Any]) -> dict[str, Any]:
    """Adds an event with the new limits for the search, and returns the changed section of the configuration.

    Raises BadRequest for a limit that the search method does not have, or a bad value, and PreconditionFailed for a
    search that has ended.
    """
    given: dict[str, int] = {name: value for name, value in limits.items() if value is not None}
    searcher: dict[str, Any] = dict(row.config["searcher"])
    for name, value in given.items():
        if reason := _FIXED.get((searcher["name"], name)):
            raise BadRequest(f"{name} of experiment {row.id} cannot be changed: {reason}")
        if not _MINIMA[name] <= value <= MAX_TRIALS:
            raise BadRequest(f"{name} must be between {_MINIMA[name]} and {MAX_TRIALS}, not {value}")
    if row.state.is_stopping or row.state.is_terminal:
        raise PreconditionFailed(f"experiment {row.id} {state_clause(row.state)}; its search creates no more trials")
    changed = {name: value for name, value in given.items() if searcher.get(name) != value}
    if changed:
        payload = asdict(LimitsChanged(**changed))
        await search_event_repository.add_event(session, row.id, 0, "limits", payload)
        notify(session, notifications.SEARCH)
    return searcher | changed
