"""Projects and records of ``det batch`` without a Slurm."""

import json
from pathlib import Path
from typing import Any

from determined_workflows.batch import job_record
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.project import Project
from determined_workflows.batch.slurm_client import QueuedJob


def project_in(folder: Path) -> Project:
    """Returns a project whose folders exist."""
    project = Project(folder / "project", folder / "scratch")
    project.files.mkdir(parents=True)
    project.scratch_dir.mkdir(parents=True)
    return project


def record_in(
    project: Project, *, job: str = "25", elements: tuple[int, ...] = (), seconds: int | None = 3600
) -> JobRecord:
    """Returns a stored record with one job."""
    folder, nonce = job_record.new_folder(project, "standard", "x")
    job_record.write_programs(folder, "#!/bin/bash\n", "true", {"data": None, "kill_wait": 30, "is_general": False})
    output = f"{project.outputs}/standard_x_{'%A_%a' if elements else '%j'}.out"
    record = JobRecord(folder, nonce, "standard", "standard-project-x", output, "true", ("det",), seconds)
    record = job_record.with_job(record, job, elements)
    job_record.store(record)
    return record


def end(record: JobRecord, job: str, *, code: int = 0, started: float = 1000, ended: float = 1100, **rank: Any) -> None:
    """Writes how a job ended, as its script does."""
    folder = record.ends_of(job)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "started").write_text(f"{started:.0f}\n")
    first = {"rank": 1, "host": "node2", "code": code, "failure": "", "signals": [], "time": ended, **rank}
    found = {"code": code, "first_failure": first if code else None, "signals": first["signals"], "time": ended}
    (folder / "job.json").write_text(json.dumps(found))


def queued(
    record: JobRecord, id: str, state: str, *, reason: str = "None", nodes: str = "", nonce: str = ""
) -> QueuedJob:
    """Returns a line of ``squeue`` for a job of a record, or with another nonce."""
    return QueuedJob(id, id.partition("_")[0], "N/A", state, reason, nodes, f"detent:{nonce or record.nonce}", "N/A")
