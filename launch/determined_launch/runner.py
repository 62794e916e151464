"""Runs a layer's plan to its end: signals go on, a dead worker ends the rest, and nothing is left behind."""

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
"""What a launcher has to end by itself once one of its workers has failed."""
TICK_SECONDS = 0.1

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Watch = Callable[[], "int | None"]
"""Asked at each tick; an exit code from it ends everything."""


@dataclass(frozen=True)
class Plan:
    """How a launcher is started. ``variables`` are added to its environment."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    restarts: bool = False
    """The launcher itself starts failed workers again, so that one failure is not the end."""
    is_shielded: bool = False
    """Its first process does not pass signals on; they are for the process below it."""


class Workers:
    """The exit records of this container's workers, from the start of one launch on."""

    def __init__(self, folder: Path, launch: str, *, restart: bool) -> None:
        self._folder = folder
        self._launch = launch
        self._restart = restart
        self._since: float | None = None

    def are_lost(self) -> bool:
        """A worker has failed, nobody starts it again, and the launcher has had its grace."""
        if self._restart:
            return False
        if self._since is None and self._failures():
            self._since = time.monotonic()
        return self._since is not None and time.monotonic() - self._since > GRACE_SECONDS

    def code(self, otherwise: int) -> int:
        """The first failed worker's exit code, else the launcher's."""
        failed = self._failures()
        if not failed or (self._restart and otherwise == 0):
            return otherwise
        return failed[0].code

    def have_recorded(self) -> bool:
        """Whether any left a record; taken for true where none can be written."""
        return bool(exit_records.of_launch(self._folder, self._launch)) or not exit_records.can_write(self._folder)

    def _failures(self) -> list[exit_records.ExitRecord]:
        return [record for record in exit_records.of_launch(self._folder, self._launch) if record.has_failed]


def new_launch() -> str:
    """A mark for the records of one start of one layer."""
    return secrets.token_hex(8)


def run(
    plan: Plan,
    environ: Mapping[str, str],
    *,
    exits: Path | None = None,
    launch: str | None = None,
    watch: Watch | None = None,
) -> int:
    """The first failed worker's exit code where one of this container failed by itself, else the launcher's.

    ``exits`` and ``launch`` are given where ``environ`` does not lead the workers to them.
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
    """Until the launcher has ended, or everything has to; a code where not the launcher's counts."""
    while True:
        try:
            child.wait(TICK_SECONDS)
            return None
        except subprocess.TimeoutExpired:
            pass
        # who was asked to end may take as long as the launcher grants: a checkpoint may be on its way
        if not asked and workers.are_lost():
            return 1
        code = watch() if watch is not None else None
        if code is not None:
            return code


def _silent_end(plan: Plan, workers: Workers, asked: list[int]) -> int:
    """The code for a launcher that left with 0: deepspeed's does so too when the process below it was killed."""
    left = processes.wrappers_below(os.getpid())
    if left:
        problem = f"the launcher has ended while {len(left)} of its workers were still running"
    elif plan.is_shielded and not workers.have_recorded():
        problem = "the launcher has ended before it started any worker"
    else:
        return 0
    if asked:
        return 128 + asked[0]
    print(problem, file=sys.stderr, flush=True)
    return 1


def _forward(child: int, number: int, plan: Plan, asked: list[int]) -> None:
    if number not in ENDING:
        # launchers end of a signal that only workers know
        for pid in processes.wrappers_below(os.getpid()):
            processes.send(pid, number)
        return
    asked.append(number)
    for pid in (plan.is_shielded and process_table.children(child)) or [child]:
        processes.send(pid, number)
