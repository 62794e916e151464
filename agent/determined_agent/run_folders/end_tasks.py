"""Ends every task of an agent's data folder without master and agent.

`det down` runs ``python -m determined_agent.run_folders.end_tasks --data DIR`` if the master does not answer. It
prints the container id of each task that still runs afterwards, and exits with 1 if there is one. The next agent on
the folder reports the others as killed, so their trials continue from their checkpoints.
"""

import argparse
import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Iterable
from multiprocessing.connection import wait
from pathlib import Path

from determined.link.run_folder import RunFolder
from determined_agent.drivers.docker import end_container, engine_of
from determined_agent.drivers.exit_record import has_ended
from determined_agent.drivers.process import has_shim, open_shim
from determined_agent.run_folders.agent_state import AgentState, FolderInUse
from determined_agent.task_process import processes
from determined_launch.environment import CONTAINER_ID

SHIM_SECONDS = 8.0
"""Time for the shims to end their tasks; then both are killed."""
EXIT_LEFT, EXIT_IN_USE = 1, 2


def end_tasks(folders: Iterable[RunFolder], seconds: float = SHIM_SECONDS) -> list[str]:
    """Ends the tasks of these run folders. Returns the container ids of those that still run. Blocking."""
    folders = list(folders)
    containers = [folder for folder in folders if engine_of(folder)]
    shims = {folder: shim for folder in folders if (shim := open_shim(folder)) is not None}
    # A shim that was killed has left the processes of its task, and no exit record.
    unended = [folder for folder in folders if folder in shims or (folder not in containers and _has_no_end(folder))]
    try:
        for folder in unended:
            folder.request_stop()
        for _pid, descriptor in shims.values():
            _send(descriptor, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        for _pid, descriptor in shims.values():
            if not _has_ended(descriptor, max(0.0, deadline - time.monotonic())):
                _send(descriptor, signal.SIGKILL)
    finally:
        for _pid, descriptor in shims.values():
            os.close(descriptor)
    for folder in unended:
        processes.kill_all(functools.partial(processes.marked, CONTAINER_ID, folder.path.name))
    left = [folder.path.name for folder in containers if not end_container(folder)]
    return left + [folder.path.name for folder in unended if is_running(folder)]


def is_running(folder: RunFolder) -> bool:
    """Returns True while the task or its shim lives."""
    if engine_of(folder):
        return not has_ended(folder)
    return has_shim(folder) or bool(processes.marked(CONTAINER_ID, folder.path.name))


def _has_no_end(folder: RunFolder) -> bool:
    """Returns True if a process was started and its end is not recorded."""
    return folder.order.exists() and not folder.exit.exists()


def _send(descriptor: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)


def _has_ended(descriptor: int, seconds: float) -> bool:
    return bool(wait([descriptor], seconds))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="determined_agent.run_folders.end_tasks", description="Ends the tasks of an agent."
    )
    parser.add_argument("--data", type=Path, required=True, help="the agent's data folder")
    data: Path = parser.parse_args().data
    if not (data / "runs").is_dir():
        return 0
    try:
        state = AgentState(data)
    except FolderInUse as problem:
        print(problem.message, file=sys.stderr)
        return EXIT_IN_USE
    with contextlib.closing(state):
        left = end_tasks(list(state.folders()))
    for name in left:
        print(name)
    return EXIT_LEFT if left else 0


if __name__ == "__main__":
    sys.exit(main())
