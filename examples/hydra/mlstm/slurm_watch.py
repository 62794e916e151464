"""Reports jobs of Slurm that fail, while the others of a sweep go on.

The launcher asks for results one job after the other, and waits without end for a job that was killed where Slurm keeps
no accounts.
"""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

ERROR_FILE = "error.txt"
"""In the folder of a run that failed: the last line of its error."""
POLL_SECONDS = 1.0
_ended = threading.Event()


class SlurmWatch(Callback):
    """A callback of Hydra. It has no attributes, since it is sent to the jobs."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        launcher = config.hydra.launcher
        if not str(launcher.get("_target_")).endswith(".SlurmLauncher"):
            return
        jobs = Path(str(launcher.submitit_folder).partition("%j")[0]).absolute()
        threading.Thread(target=_watch, args=(Path(config.hydra.sweep.dir).absolute(), jobs), daemon=True).start()

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        _ended.set()


def _watch(sweep: Path, jobs: Path) -> None:
    reported: set[Path | str] = set()
    absent_before: set[str] = set()
    while not _ended.wait(POLL_SECONDS):
        for path in sweep.glob(f"*/{ERROR_FILE}"):
            if path not in reported:
                reported.add(path)
                _report(f"job #{path.parent.name} failed: {path.read_text().strip()}")
        queued = _queued()
        if queued is None:
            continue
        ids = {path.parent.name for path in jobs.glob("*/*_submitted.pkl")}
        without_result = {job for job in ids if not any((jobs / job).glob("*_result.pkl"))}
        absent = without_result - queued
        # Twice: a shared file system may show the result later than Slurm the end.
        dead = absent & absent_before
        absent_before = absent
        for job in sorted(dead - reported):
            reported.add(job)
            _report(f"Slurm job {job} ended without a result: {_last_line(jobs / job)}")
        if dead and dead == without_result:
            # Nothing else ends the launcher's wait; an interrupt is ignored in the background of a shell.
            logging.shutdown()
            os._exit(1)


def _queued() -> set[str] | None:
    """Returns the ids of jobs that wait or run, or None where Slurm does not answer."""
    argv = ["squeue", "--noheader", "--array", "--format=%i"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return set(done.stdout.split()) if done.returncode == 0 else None


def _last_line(folder: Path) -> str:
    logs = sorted(folder.glob("*_log.err"))
    lines = [line for log in logs for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f"{lines[-1]} (see {logs[0]})" if lines else f"it wrote nothing into {folder}"


def _report(text: str) -> None:
    print(f"error: {text}", file=sys.stderr, flush=True)
