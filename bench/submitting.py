"""Submits the experiments of the benchmarks and waits for their end."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from determined.client import submissions
from determined.client.session import Session
from determined.context import pack

T = TypeVar("T")


def context_of(folder: Path, files: Sequence[Path]) -> Path:
    """Returns a folder with only these files."""
    folder.mkdir(parents=True)
    for file in files:
        shutil.copy(file, folder)
    return folder


def create(session: Session, config: str, context: Path) -> tuple[int, int]:
    """Creates and starts an experiment. Returns its id and the id of its only trial."""
    packed = pack(context)
    answer = submissions.create(session, {"config": config, "activate": True}, packed)
    experiment = int(answer["experiment"]["id"])
    trials = until(lambda: session.get(f"/api/v1/experiments/{experiment}/trials")["trials"], "a trial")
    return experiment, int(trials[0]["id"])


def state(session: Session, experiment: int) -> str:
    return str(session.get(f"/api/v1/experiments/{experiment}")["experiment"]["state"])


def until_completed(session: Session, experiment: int, *, pause: float = 0.05) -> None:
    ended = ("STATE_COMPLETED", "STATE_ERROR", "STATE_CANCELED")
    final_state = until(
        lambda: (now := state(session, experiment)) in ended and now, f"the end of experiment {experiment}", pause=pause
    )
    if final_state != "STATE_COMPLETED":
        trial = session.get(f"/api/v1/experiments/{experiment}/trials")["trials"][0]["id"]
        log = [str(line.get("message")) for line in session.stream(f"/api/v1/trials/{trial}/logs")]
        raise RuntimeError(f"experiment {experiment} ended {final_state}: {''.join(log)[-1500:]}")


def until(question: Callable[[], T], what: str, *, within: float = 120.0, pause: float = 0.05) -> T:
    """Polls until an answer is true, and returns it. Raises RuntimeError after ``within`` seconds."""
    deadline = time.monotonic() + within
    while not (answer := question()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come within {within:g} s")
        time.sleep(pause)
    return answer


def rows(session: Session, trial: int, group: str) -> list[dict[str, Any]]:
    """Returns the reported metrics that are not archived, by step."""
    query = {"trialIds": trial, "group": group}
    return [row for part in session.stream("/api/v1/trials/metrics/trial_metrics", query) for row in part["metrics"]]
