"""The states of the jobs of a run folder, from its files, the process that runs them, and the queue of Slurm."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from determined.errors import ConfigError
from determined_workflows import supervised_run
from determined_workflows.hydra import run_folder, run_record, slurm_queue
from determined_workflows.hydra.composer.secrets import without_in_override
from determined_workflows.hydra.run_record import Record
from determined_workflows.hydra.slurm_queue import QueuedJob
from determined_workflows.runner.task_files import FAILED, FINISHED, RUNNING

INTERRUPTED, UNFINISHED, ENDED, WAITING = "interrupted", "unfinished", "ended", "waiting"
"""``unfinished``: no `result.json`, and nothing tells more. ``ended``: its end is known, but not how."""


@dataclass(frozen=True)
class JobStatus:
    """A job with its state; ``detail`` is for people."""

    name: str
    state: str
    detail: str = ""

    def line(self) -> str:
        return f"{self.state:<12}{self.name}" + (f"  ({self.detail})" if self.detail else "")


def summary(jobs: Sequence[JobStatus]) -> str:
    """Returns the counts of states.

    >>> summary([JobStatus("0", "finished"), JobStatus("1", "failed"), JobStatus("2", "finished")])
    'Jobs: 3 (1 failed, 2 finished)'
    """
    counts = Counter(job.state for job in jobs)
    return f"Jobs: {len(jobs)} ({', '.join(f'{count} {state}' for state, count in sorted(counts.items()))})"


def is_run(path: Path) -> bool:
    """Returns True for a folder in which Hydra or `det hydra` has written."""
    return (
        (path / run_folder.MULTIRUN_FILE).is_file() or (path / ".hydra").is_dir() or run_record.kept_in(path).is_dir()
    )


def check_is_run(path: Path) -> None:
    """Raises NotFound if a folder does not exist, and ConfigError if it is none of a run."""
    if not path.is_dir() or not is_run(path):
        run_folder.read(path)  # raises the error for what is missing
        raise ConfigError(f"{path} is no folder of a Hydra run")


def job_folders(path: Path) -> list[Path]:
    """Returns the folders of the jobs that have begun: those of a multirun in their order, or the folder of a run."""
    if (path / ".hydra").is_dir():
        return [path]
    found = [each.parent for each in path.glob("*/.hydra")]
    return sorted(found, key=lambda each: (number_of(each), each.name))


def number_of(folder: Path) -> int:
    """Returns Hydra's number of a job: its name, or what Hydra wrote."""
    if folder.name.isdigit():
        return int(folder.name)
    try:
        text = (folder / ".hydra" / "hydra.yaml").read_text(encoding="utf-8")
        return int(yaml.safe_load(text)["hydra"]["job"]["num"])
    except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError):
        return 0


def read(path: Path, record: Record | None, queue: Sequence[QueuedJob] = ()) -> list[JobStatus]:
    """Returns the jobs of a run folder whose files are here. ``queue``: its jobs that Slurm knows."""
    folders = job_folders(path)
    is_live = supervised_run.process(run_record.kept_in(path)) is not None
    queued = {job.number: job.state for job in queue}
    has_results = any((each / run_folder.RESULT).is_file() for each in folders)
    statuses = []
    for folder in folders:
        number = number_of(folder) if folder != path else 0
        is_newest = folder == folders[-1]
        state = queued.get(number) or _state(path, folder, record, is_live=is_live, is_newest=is_newest)
        if state == ENDED and has_results:
            state = FAILED
        statuses.append(JobStatus(str(folder.name), state, _detail(folder)))
    return [
        *statuses,
        *_not_begun(record, len(folders), queued, {number_of(each) for each in folders}, is_live=is_live),
    ]


def _state(path: Path, folder: Path, record: Record | None, *, is_live: bool, is_newest: bool) -> str:
    if (folder / run_folder.RESULT).is_file():
        return FINISHED
    own = supervised_run.state(run_record.kept_in(folder)) if folder != path else None
    state = own or supervised_run.state(run_record.kept_in(path))
    if state == RUNNING and not is_live:
        return INTERRUPTED if own or is_newest else ENDED
    if own:
        return own
    if record is None or state is None:
        return UNFINISHED
    if state == RUNNING:
        return RUNNING if is_newest and record.target == "local" else ENDED
    return state if state == FINISHED or folder == path else ENDED


def _not_begun(
    record: Record | None, begun: int, queued: Mapping[int, str], numbers: set[int], *, is_live: bool
) -> Iterator[JobStatus]:
    """Yields the jobs without a folder, by their numbers."""
    if record is None or begun >= record.jobs:
        return
    state = WAITING if is_live else FAILED if record.jobs == 1 else INTERRUPTED
    for number in range(record.jobs):
        if record.jobs == 1 or number not in numbers:
            yield JobStatus(str(number), queued.get(number, state), "not begun")


def _detail(folder: Path) -> str:
    try:
        overrides = yaml.safe_load((folder / ".hydra" / "overrides.yaml").read_text(encoding="utf-8")) or []
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        overrides = []
    listed = overrides if isinstance(overrides, list) else []
    parts = [" ".join(without_in_override(str(each)) for each in listed)]
    steps = run_folder.checkpoints(folder)
    if steps:
        parts.append(f"newest checkpoint {list(steps.values())[-1].name}")
    return ", ".join(filter(None, parts))


def slurm_folder(path: Path, record: Record | None) -> Path | None:
    """Returns the folder with the scripts of a run's jobs of Slurm; None if it has none."""
    folder = Path(record.slurm_folder) if record and record.slurm_folder else path / ".submitit"
    return folder if folder.is_dir() else None


def queue_of(path: Path, record: Record | None) -> list[QueuedJob]:
    """Returns the jobs of a run that Slurm knows. Raises DeterminedError if Slurm does not answer."""
    folder = slurm_folder(path, record)
    return slurm_queue.jobs(folder) if folder else []
