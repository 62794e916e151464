"""Waits for the jobs of an experiment: failures are logged at once, and every job gets its result."""

import itertools
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from determined.client import experiments, lifecycle
from determined.client.paging import items
from determined.client.session import Session
from determined.errors import MasterUnreachable
from determined.experimental._metrics import stream_reports
from determined_workflows.hydra.hyperparameters import OF_JOB

logger = logging.getLogger(__name__)
POLL_SECONDS = 0.2
TRIALS_POLLS = 5
"""The trials are asked for at every fifth poll of the experiment: each question takes time from the jobs of a small
cluster."""
GROUPS = ("hydra", "validation")
VALUE = "return_value"
COMPLETED, FAILED, CANCELED = "STATE_COMPLETED", "STATE_ERROR", "STATE_CANCELED"
ENDED = frozenset((COMPLETED, FAILED, CANCELED))


@dataclass(frozen=True)
class Outcome:
    """How a job ended: with what its function returned, or with ``failure``."""

    value: object = None
    failure: str | None = None


def wait(session: Session, experiment_id: int, count: int, *, is_fail_fast: bool = False) -> list[Outcome]:
    """Waits until the experiment has ended and returns the outcome of each job by its number.

    A pause does not end the experiment: it is waited for. With ``is_fail_fast`` the first failure ends the other jobs.
    """
    try:
        trials = _watch(session, experiment_id, is_fail_fast=is_fail_fast)
    except KeyboardInterrupt:
        logger.warning(
            "experiment %d keeps running; `det experiment wait %d` waits for it, `det experiment cancel %d` ends it",
            *[experiment_id] * 3,
        )
        raise
    values = _values(session, [int(each["id"]) for each in trials.values()])
    return [_outcome(trials.get(number), values) for number in range(count)]


def _watch(session: Session, experiment_id: int, *, is_fail_fast: bool) -> dict[int, Mapping[str, Any]]:
    told: set[int] = set()
    is_paused = is_lost = False
    trials: dict[int, Mapping[str, Any]] = {}
    polls = itertools.count()
    while True:
        try:
            state = str(experiments.get(session, experiment_id)["state"])
            if state not in ENDED and next(polls) % TRIALS_POLLS:
                time.sleep(POLL_SECONDS)
                continue
            found = items(session, f"{experiments.PREFIX}/{experiment_id}/trials", "trials")
            trials = {_number(each): each for each in found}
        except MasterUnreachable as error:
            if not is_lost:
                logger.warning("waiting for experiment %d: %s", experiment_id, error)
            is_lost = True
            time.sleep(POLL_SECONDS)
            continue
        is_lost = False
        for number, trial in trials.items():
            if trial["state"] == FAILED and number not in told:
                told.add(number)
                logger.error("job %d failed (trial %s): %s", number, trial["id"], trial["failure"])
                if is_fail_fast and state not in ENDED:
                    lifecycle.steer(session, experiment_id, "kill")
        if state in ENDED:
            return trials
        if state == "STATE_PAUSED" and not is_paused:
            logger.warning(
                "experiment %d is paused; `det experiment activate %d` resumes it", experiment_id, experiment_id
            )
        is_paused = state == "STATE_PAUSED"
        time.sleep(POLL_SECONDS)


def _number(trial: Mapping[str, Any]) -> int:
    return int(trial["hparams"][OF_JOB]["job"])


def _values(session: Session, trial_ids: list[int]) -> dict[int, object]:
    values: dict[int, object] = {}
    for group in GROUPS if trial_ids else ():
        for report in stream_reports(session, trial_ids, group):
            if VALUE in report.metrics:
                values.setdefault(report.trial_id, report.metrics[VALUE])
    return values


def _outcome(trial: Mapping[str, Any] | None, values: Mapping[int, object]) -> Outcome:
    if trial is None:
        return Outcome(failure="the experiment ended before the job began")
    if trial["state"] == COMPLETED:
        return Outcome(value=values.get(int(trial["id"])))
    reason = trial["failure"] or "it was canceled"
    return Outcome(failure=f"trial {trial['id']}: {reason}")
