"""Runs a layer's plan to its end: forwards signals, ends all workers after one failed, and leaves no process behind."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from determined_launch import environment, exit_records, process, process_table, processes

GRACE_SECONDS = 0.5
"""Time in which a launcher has to end by itself after one of its workers failed."""
TICK_SECONDS = 0.1

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Watch = Callable[[], "int | None"]
"""Called at each tick; an exit code from it ends everything."""


@dataclass(frozen=True)
class LauncherPlan:
    """How to start a launcher. ``variables`` are added to its environment."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    restarts: bool = False
    """True if the launcher restarts failed workers, so that one failure does not end the run."""
    is_shielded: bool = False
    """True if the launcher's first process does not forward signals; they go to its child."""


class Workers:
    """Reads the exit records that this container's workers write after the start of one launch."""

    def __init__(self, folder: Path, launch: str, *, restart: bool) -> None:
        self._folder = folder
        self._launch = launch
        self._restart = restart
        self._since: float | None = None

    def are_lost(self) -> bool:
        """Returns True if a worker failed, nothing restarts it, and the launcher's grace period is over."""
        if self._restart:
            return False
        if self._since is None and self._failures():
            self._since = time.monotonic()
        return self._since is not None and time.monotonic() - self._since > GRACE_SECONDS

    def code(self, otherwise: int) -> int:
        """Returns the exit code of the first failed worker, else that of the launcher."""
        failed = self._failures()
        if not failed or (self._restart and otherwise == 0):
            return otherwise
        return failed[0].code

    def have_recorded(self) -> bool:
        """Returns True if a worker left a record, or if the disk takes none: then a missing one proves nothing."""
        return bool(exit_records.of_launch(self._folder, self._launch)) or not exit_records.can_write(self._folder)

    def _failures(self) -> list[exit_records.ExitRecord]:
        return [record for record in exit_records.of_launch(self._folder, self._launch) if record.has_failed]


def new_launch() -> str:
    """Returns a mark for the records of one start of a layer."""
    return secrets.token_hex(8)


def run(
    plan: LauncherPlan,
    environ: Mapping[str, str],
    *,
    exits: Path | None = None,
    launch: str | None = None,
    watch: Watch | None = None,
) -> int:
    """Returns the code of the first worker of this container that failed by itself, else that of the launcher.

    ``exits`` and ``launch`` are given if ``environ`` does not pass them to the workers.
    """
    launch = launch or new_launch()
    workers = Workers(exits or exit_records.folder({**environ, **plan.variables}), launch, restart=plan.restarts)
    processes.adopt_orphans()
    asked: list[int] = []
    with process.SignalForwarder() as signals:
        try:
            child = subprocess.Popen(plan.argv, env={**environ, **plan.variables, environment.LAUNCH_ID: launch})
        except OSError as error:
            return process.start_failure(plan.argv, error)
        signals.send_to(lambda number: _forward(child.pid, number, plan, asked))
        try:
            code = _watch(child, workers, asked, watch)
            if code is None:
                code = process.exit_code(child.returncode) or _silent_end(plan, workers, asked)
        finally:
            processes.kill_below(os.getpid())
            child.wait()
    return workers.code(code)


def _watch(child: "subprocess.Popen[bytes]", workers: Workers, asked: list[int], watch: Watch | None) -> int | None:
    """Waits until the launcher ends or everything has to end; returns a code if the launcher's does not count."""
    while True:
        try:
            child.wait(TICK_SECONDS)
            return None
        except subprocess.TimeoutExpired:
            pass
        # no deadline after a signal: workers may be saving a checkpoint, and the launcher has its own limit
        if not asked and workers.are_lost():
            return 1
        code = watch() if watch is not None else None
        if code is not None:
            return code


def _silent_end(plan: LauncherPlan, workers: Workers, asked: list[int]) -> int:
    """Returns the code for a launcher that exited with 0.

    deepspeed's launcher does so even if the process below it was killed.
    """
    left = processes.wrappers_below(os.getpid())
    if left:
        problem = f"the launcher ended while {len(left)} of its workers were still running"
    elif plan.is_shielded and not workers.have_recorded():
        problem = "the launcher ended before it started any worker"
    else:
        return 0
    if asked:
        return 128 + asked[0]
    print(problem, file=sys.stderr, flush=True)
    return 1


def _forward(child: int, number: int, plan: LauncherPlan, asked: list[int]) -> None:
    if number not in ENDING:
        # launchers die of a signal that only workers handle
        for pid in processes.wrappers_below(os.getpid()):
            processes.send(pid, number)
        return
    asked.append(number)
    for pid in (plan.is_shielded and process_table.children(child)) or [child]:
        processes.send(pid, number)
