"""API calls that change an experiment or a trial: pause, activate, cancel, kill, archive, delete."""

from typing import Any
from urllib.parse import quote

from determined.client.session import Session

EXPERIMENTS = "/api/v1/experiments"
TRIALS = "/api/v1/trials"


def steer(session: Session, experiment_id: int, verb: str) -> None:
    """Changes the state of an experiment: activate, pause, cancel, kill, archive or unarchive."""
    session.post(f"{EXPERIMENTS}/{experiment_id}/{verb}")


def delete(session: Session, experiment_id: int) -> None:
    """Deletes rows and files of an experiment; the master continues after its answer."""
    session.delete(f"{EXPERIMENTS}/{experiment_id}")


def add_label(session: Session, experiment_id: int, label: str) -> list[str]:
    """Adds a label and returns the labels of the experiment."""
    return list(session.request("PUT", f"{EXPERIMENTS}/{experiment_id}/labels/{quote(label, safe='')}")["labels"])


def remove_label(session: Session, experiment_id: int, label: str) -> list[str]:
    """Removes a label and returns the labels of the experiment."""
    return list(session.delete(f"{EXPERIMENTS}/{experiment_id}/labels/{quote(label, safe='')}")["labels"])


def model_definition(session: Session, experiment_id: int) -> str:
    """Returns the context as a base64 tar.gz."""
    return str(session.get(f"{EXPERIMENTS}/{experiment_id}/model_def")["b64Tgz"])


def kill_trial(session: Session, trial_id: int) -> None:
    """Ends one trial immediately."""
    session.post(f"{TRIALS}/{trial_id}/kill")


def trial_decisions(session: Session, trial_id: int) -> list[dict[str, Any]]:
    """Returns the decisions of the search on a trial, oldest first, each with its reason."""
    return list(session.get(f"/detent/trials/{trial_id}/decisions")["decisions"])


def search_decisions(session: Session, experiment_id: int) -> list[dict[str, Any]]:
    """Returns the decisions of an experiment's search, oldest first, each with its reason."""
    return list(session.get(f"/detent/experiments/{experiment_id}/search")["decisions"])


def attempts(session: Session, trial_id: int) -> list[dict[str, Any]]:
    """Returns the attempts, oldest first: ``{runId, state, startedAt, endedAt, reason, code, message, containers}``."""
    return list(session.get(f"/detent/trials/{trial_id}/attempts")["attempts"])


def progress(session: Session, trial_id: int) -> dict[str, Any]:
    """Returns ``{state, progress, steps, bestMetric, metricName, startedAt, waiting}``."""
    return dict(session.get(f"/detent/trials/{trial_id}/progress"))
