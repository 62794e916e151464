"""The output of the jobs of a run folder whose files are on this machine."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from determined.errors import NotFound
from determined_workflows import supervised_run
from determined_workflows.hydra import run_record, run_status
from determined_workflows.hydra.run_record import Record
from determined_workflows.runner.logs import print_files


def show(path: Path, record: Record | None, job: int | None, *, is_running: Callable[[], bool] | None = None) -> None:
    """Prints the output of a run, or of one of its jobs. With ``is_running`` until that returns False.

    Raises NotFound if there is no such job, or nothing was written.
    """
    if job is not None and (path / ".hydra").is_dir() and job != 0:
        raise NotFound(f"{path} is one run, whose only job is 0")
    if is_running is None and not list(files(path, record, job)):
        what = f"job {job} of {path}" if job is not None else str(path)
        raise NotFound(f"{what} has no output yet; `det hydra status {path}` prints the states of its jobs")
    is_of_all = job is not None and not (path / ".hydra").is_dir() and run_status.slurm_folder(path, record) is None
    if is_of_all and supervised_run.console(run_record.kept_in(path)).is_file():
        print(f"what job {job} printed is among the output of all: `det hydra logs {path}`", file=sys.stderr)
    print_files(lambda: files(path, record, job), lambda: is_running is None or not is_running())


def files(path: Path, record: Record | None, job: int | None) -> Iterator[Path]:
    """Yields the files with the output: of jobs of Slurm what the launcher printed and their own, of a local run what
    it printed, else what Hydra logged."""
    console = supervised_run.console(run_record.kept_in(path))
    slurm = run_status.slurm_folder(path, record)
    if slurm is not None:
        if job is None and console.is_file():
            yield console
        pattern = "*" if job is None else f"*_{job}"
        yield from sorted(slurm.glob(f"{pattern}/*_log.out"))
        yield from sorted(slurm.glob(f"{pattern}/*_log.err"))
        return
    is_one_run = (path / ".hydra").is_dir()
    if console.is_file() and (job is None or is_one_run):
        yield console
        return
    for folder in run_status.job_folders(path):
        if is_one_run or job is None or run_status.number_of(folder) == job:
            yield from sorted(folder.glob("*.log"))
