"""The record of a submission: a folder beside the outputs with its script, its helper programs, and its ends."""

import json
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from determined.errors import ConfigError, NotFound
from determined_workflows.batch.project import Project

SCRIPT, RECORD, ENDS, COMMAND, PLAN = "job.sh", "record.json", "ends", "command.sh", "task/job.json"
_TASK = Path(__file__).parent / "task"
_ON_NODES = ("run_rank.py", "run_worker.py", "node_data.py", "wandb_key.py", "free_port.py", "end_job.py")
MAX_BYTES = 1 << 20
STARTED = "started"
"""File that the script of a job writes first."""


@dataclass(frozen=True)
class SubmittedJob:
    """One job of Slurm for a submission. ``elements``: of its array, empty without one. ``id``: empty if unknown."""

    id: str
    elements: tuple[int, ...] = ()
    time: float = 0.0


@dataclass(frozen=True)
class JobRecord:
    """What is kept of a submission. Its jobs bear the nonce in their comments: ids of Slurm are used again."""

    folder: Path
    nonce: str
    label: str
    job_name: str
    output: str
    command: str
    words: tuple[str, ...]
    time_seconds: int | None
    jobs: tuple[SubmittedJob, ...] = ()
    is_stopped: bool = False
    sbatch_words: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    target: str = "slurm"
    """``slurm``, ``local`` or ``det``."""
    master: str = ""
    """Address of the cluster of an experiment: its id is that of the job."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def script(self) -> Path:
        return self.folder / SCRIPT

    @property
    def comment(self) -> str:
        return f"detent:{self.nonce}"

    def ends_of(self, job: str) -> Path:
        """Returns the folder of the ends of a job, or of an element of an array such as ``25_3``."""
        return self.folder / ENDS / job


def new_folder(project: Project, label: str, exp_name: str) -> tuple[Path, str]:
    """Returns the folder of a new record and its nonce. Creates nothing."""
    nonce = secrets.token_hex(6)
    return project.records / f"{label}_{exp_name}-{nonce}", nonce


def check_inputs(record: JobRecord) -> None:
    """Raises ConfigError if the script, the packed data or the environment of a submission is gone."""
    try:
        plan = json.loads((record.folder / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        plan = {}
    archive = (plan.get("data") or {}).get("archive")
    for path in filter(None, (record.script, archive, plan.get("environment"))):
        if not Path(path).exists():
            raise ConfigError(f"{path} is gone; submit again: {' '.join(record.words)}")


def write_programs(folder: Path, script: str, command: str, plan: Mapping[str, Any]) -> None:
    """Writes the script, the command, and the programs that run on nodes. Raises OSError."""
    (folder / "task").mkdir(parents=True)
    (folder / ENDS).mkdir()
    for name in _ON_NODES:
        shutil.copy(_TASK / name, folder / "task" / name)
    (folder / "task" / "run_worker.py").chmod(0o755)
    (folder / PLAN).write_text(json.dumps(plan, indent=1), encoding="utf-8")
    (folder / COMMAND).write_text(command + "\n", encoding="utf-8")
    (folder / SCRIPT).write_text(script, encoding="utf-8")
    (folder / SCRIPT).chmod(0o755)


def store(record: JobRecord) -> None:
    """Writes the record. Raises OSError."""
    data = {name: value for name, value in asdict(record).items() if name != "folder"}
    draft = record.folder / f".{RECORD}"
    draft.write_text(json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8")
    draft.replace(record.folder / RECORD)


def read(folder: Path) -> JobRecord:
    """Returns the record of a folder. Raises NotFound if it has none that can be read."""
    try:
        with (folder / RECORD).open("rb") as file:
            data = json.loads(file.read(MAX_BYTES))
        jobs = tuple(SubmittedJob(each["id"], tuple(each["elements"]), each["time"]) for each in data.pop("jobs"))
        words, options = tuple(data.pop("words")), tuple(data.pop("sbatch_words"))
        return JobRecord(folder, jobs=jobs, words=words, sbatch_words=options, **data)
    except (OSError, ValueError, KeyError, TypeError):
        raise NotFound(f"{folder} is no record of a submission") from None


def all_of(project: Project) -> list[JobRecord]:
    """Returns the records of a project, the oldest first."""
    return all_in(project.records)


def all_in(records: Path) -> list[JobRecord]:
    """Returns the records in a folder, the oldest first."""
    folders = [path.parent for path in records.glob(f"*/{RECORD}")]
    jobs = []
    for folder in folders:
        try:
            jobs.append(read(folder))
        except NotFound:
            continue
    return sorted(jobs, key=lambda record: record.jobs[0].time if record.jobs else 0.0)


def find(project: Project, target: str | None) -> JobRecord:
    """Returns a record by its name, its folder, its nonce or the id of a job; None means the newest.

    Raises NotFound.
    """
    if target and (Path(target) / RECORD).is_file():
        return read(Path(target).resolve())
    records = all_of(project)
    if target is None:
        if not records:
            raise NotFound(f"nothing was submitted from {project.root}; `det batch run` does it")
        return records[-1]
    exact = [each for each in records if target in (each.name, each.nonce) or any(target == j.id for j in each.jobs)]
    begun = exact or [each for each in records if each.name.startswith(f"{target}-")]
    if not begun:
        raise NotFound(f'no submission of {project.root} is "{target}"; `det batch status` lists them')
    return begun[-1]


def has_started(record: JobRecord, job: str) -> bool:
    """Returns True if the script of a job has run, or that of an element of an array such as ``25_3``."""
    return (record.ends_of(job) / STARTED).exists()


def with_job(record: JobRecord, job: str, elements: tuple[int, ...]) -> JobRecord:
    """Returns the record with one more job."""
    return replace(record, jobs=(*record.jobs, SubmittedJob(job, elements, time.time())), is_stopped=False)


def remove(folder: Path, project: Project) -> None:
    """Removes the record of a refused submission, and the folders that are empty without it."""
    shutil.rmtree(folder, ignore_errors=True)
    for empty in (project.records, project.outputs):
        try:
            empty.rmdir()
        except OSError:
            return
