"""Calls about one experiment."""

from collections.abc import Mapping
from typing import Any

from determined.client.numbers import from_wire
from determined.client.session import FOR_EVER, Session
from determined.errors import NotFound

PREFIX = "/api/v1/experiments"


def get(session: Session, experiment_id: int) -> dict[str, Any]:
    """Returns the experiment as the master shows it."""
    return dict(session.get(f"{PREFIX}/{experiment_id}")["experiment"])


def change(session: Session, experiment_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes fields of an experiment, for example ``name`` or ``resources.priority``, and returns the experiment."""
    return dict(session.patch(f"{PREFIX}/{experiment_id}", changes)["experiment"])


def preview_gc(session: Session, experiment_id: int, policy: Mapping[str, int]) -> dict[str, Any]:
    """Returns the checkpoints that a policy would delete (``checkpoints``, with the keys that older clients expect) and
    the searcher's metric (``metric_name``). ``policy``: ``save_experiment_best`` and so on."""
    return dict(session.get(f"/experiments/{experiment_id}/preview_gc", dict(policy)))


def code(session: Session, experiment_id: int, *, with_diff: bool = True) -> dict[str, Any] | None:
    """Returns the state of the code from which an experiment was created: ``{commit, branch, remote, isDirty, isCut,
    diff, untracked}``. None if none is stored, or the master is older. Without ``with_diff``, ``diff`` is empty."""
    try:
        found = session.get(f"/detent/experiments/{experiment_id}/code", {"diff": with_diff})["code"]
    except NotFound:
        return None
    return None if found is None else dict(found)


def find_best_validation(session: Session, experiment_id: int) -> float | None:
    """Returns the best value of the searcher's metric over all trials; None if there is none."""
    try:
        answer = session.get(f"{PREFIX}/{experiment_id}/searcher/best_searcher_validation_metric", retry=FOR_EVER)
    except NotFound:
        return None
    value = from_wire(answer.get("metric"))
    return None if value is None else float(value)
