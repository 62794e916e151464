"""Submits a trial as one job of Slurm, without a master: by the script of ``det batch``, whose records it has."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from determined.errors import ConfigError, NotFound
from determined_workflows import site_profile
from determined_workflows.batch import control, job_record, logs, status, submission
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.project import FILES_FOLDER, Project
from determined_workflows.batch.settings import JobSettings
from determined_workflows.batch.status import JobState
from determined_workflows.batch.submission import PreparedJob, Request
from determined_workflows.rlhf import local_run, project
from determined_workflows.rlhf.composition import Composition
from determined_workflows.rlhf.run_record import Record

Say = Callable[[str], None]
SCRATCH = "slurm"
HOURS = "01-00:00:00"


def prepare(composition: Composition, folder: Path, *, partition: str | None, say: Say) -> PreparedJob:
    """Checks the job. Raises ConfigError and SlurmError; nothing is submitted then."""
    return submission.prepare(_request(composition, folder, partition), os.environ, say)


def submit(composition: Composition, folder: Path, variables: Mapping[str, str], prepared: PreparedJob) -> str:
    """Submits the job and returns its id. Raises ConfigError if its files cannot be written, and SlurmError."""
    local_run.write_roles(composition, folder, variables)
    record, job = submission.submit(prepared)
    run = project.run_folder(folder, composition.experiment, composition.trial)
    Record("slurm", job=str(record.folder)).write(run)
    return job


def observe(record: Record) -> JobState:
    """Returns the state of the job. Raises SlurmError if Slurm does not answer."""
    queue, _ = status.queue_or_none()
    _, states = status.observe(_job(record), queue)
    return states[0]


def output(record: Record) -> Path:
    """Returns the file with the output of the job. Raises NotFound if it has none yet."""
    state = observe(record)
    path = logs.path_of(_job(record), state)
    if path is None:
        raise NotFound(f"job {state.id} has no output yet; it is {state.state} {state.detail}".strip())
    return path


def stop(record: Record) -> list[str]:
    """Cancels the job. Returns the ids that were cancelled. Raises Conflict if it has ended."""
    return control.stop(_job(record))


def _job(record: Record) -> JobRecord:
    if record.job is None:
        raise ConfigError("the record of this run names no job of Slurm")
    return job_record.read(Path(record.job))


def _request(composition: Composition, folder: Path, partition: str | None) -> Request:
    root = folder.resolve()
    site = site_profile.find(None, root / FILES_FOLDER, os.environ)
    scratch = os.environ.get("SCRATCH") or site.scratch or str(root / project.RUNS_FOLDER / SCRATCH)
    settings = JobSettings(
        gpus=composition.gpus,
        cpus=composition.cpus,
        memory=f"{composition.memory_mib}M",
        time=HOURS,
        partition=partition,
        exp_name=f"{composition.experiment}-{composition.trial}",
        typed=frozenset({"gpus"}),
    )
    command = local_run.command(composition, root)
    words = ["det", "rlhf", "run", composition.experiment, composition.trial, "--on", "slurm"]
    found = Request(settings, Project(root, Path(scratch)), command, words, (), site)
    return replace(found, is_built_here=True)
