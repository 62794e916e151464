"""The experiment of a run folder on the cluster: states of its jobs, their trials, waiting for one, and stopping it."""

import time
from collections.abc import Mapping
from typing import Any

from determined.client import experiments, lifecycle
from determined.client.paging import items
from determined.client.session import Session
from determined.errors import Conflict, NotFound
from determined_workflows.hydra.hyperparameters import OF_JOB
from determined_workflows.hydra.job_results import ENDED
from determined_workflows.hydra.run_record import Record
from determined_workflows.hydra.run_status import WAITING, JobStatus

POLL_SECONDS = 1.0


def status(session: Session, record: Record) -> tuple[str, list[JobStatus]]:
    """Returns the state of the experiment and its jobs."""
    assert record.experiment is not None
    state = _shown(experiments.get(session, record.experiment)["state"])
    found = trials(session, record)
    jobs = []
    for number in sorted({*record.numbers, *found}):
        trial = found.get(number)
        if trial is None:
            jobs.append(JobStatus(str(number), WAITING))
            continue
        overrides = str(trial["hparams"][OF_JOB].get("overrides") or "")
        detail = ", ".join(filter(None, (overrides, f"trial {trial['id']}")))
        jobs.append(JobStatus(str(number), _shown(trial["state"]), detail))
    return state, jobs


def trials(session: Session, record: Record) -> dict[int, Mapping[str, Any]]:
    """Returns the trials of an experiment by the numbers of their jobs."""
    found = items(session, f"{experiments.PREFIX}/{record.experiment}/trials", "trials")
    return {int(each["hparams"][OF_JOB]["job"]): each for each in found}


def trial_of(session: Session, record: Record, job: int) -> int:
    """Returns the trial of a job. Raises NotFound if it has not begun, or there is no such job."""
    found = trials(session, record)
    if job in found:
        return int(found[job]["id"])
    if job in record.numbers:
        raise NotFound(f"job {job} of experiment {record.experiment} has not begun yet")
    raise NotFound(
        f"experiment {record.experiment} has no job {job}; its jobs are {record.first_job} to {record.numbers[-1]}"
    )


def wait_for_trial(session: Session, record: Record, job: int) -> int | None:
    """Waits until a job has begun and returns its trial; None if the experiment ended before. Raises NotFound if there
    is no such job."""
    while True:
        # Asked before the trials are listed: if the experiment has ended by then, the list is complete.
        is_over = has_ended(session, record)
        found = trials(session, record)
        if job in found:
            return int(found[job]["id"])
        if job not in record.numbers:
            trial_of(session, record, job)
        if is_over:
            return None
        time.sleep(POLL_SECONDS)


def has_ended(session: Session, record: Record) -> bool:
    """Returns True if the experiment has ended."""
    assert record.experiment is not None
    return str(experiments.get(session, record.experiment)["state"]) in ENDED


def stop(session: Session, record: Record, *, is_killing: bool = False) -> None:
    """Cancels the experiment; jobs that use the Core API save a checkpoint first, unless ``is_killing``.

    Raises Conflict if it has ended.
    """
    assert record.experiment is not None
    if has_ended(session, record):
        raise Conflict(f"experiment {record.experiment} of {record.master} has ended already")
    lifecycle.steer(session, record.experiment, "kill" if is_killing else "cancel")


def _shown(state: object) -> str:
    return str(state).removeprefix("STATE_").lower()
