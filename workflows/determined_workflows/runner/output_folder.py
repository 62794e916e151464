"""What a run keeps in its output beside the tasks: the lock, the lines of its console, and its exit code."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from determined_launch import pid_lock
from determined_launch.pid_lock import LockHeld, PidLock
from determined_workflows.runner.errors import ConflictError, RunnerError
from determined_workflows.runner.supervisor import store

CONSOLE = ".runner.console"
_LOCK = ".runner.lock"
_EXIT_CODE = ".runner.exit"
TAKEOVER_SECONDS = 10.0
POLL_SECONDS = 0.05


@contextmanager
def locked(output: Path) -> Iterator[int]:
    """Creates the output and holds its lock. Waits for the supervisor of a runner that was killed, which ends.

    Raises ConflictError if another run uses the output, and RunnerError if it cannot be written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        lock = _take(output / _LOCK)
    except OSError as error:
        raise RunnerError(f"the output {output} cannot be written: {error.strerror}") from None
    with lock:
        yield lock.fileno()


def runner(output: Path) -> int | None:
    """Returns the process of the run that uses the output, None if there is none."""
    return pid_lock.holder(output / _LOCK)


def other_host(output: Path) -> str | None:
    """Returns the machine of the run that uses the output, if that is not this one."""
    return pid_lock.other_host(output / _LOCK)


def begin(output: Path) -> None:
    """Forgets how the run before ended. Raises OSError."""
    (output / _EXIT_CODE).unlink(missing_ok=True)


def end(output: Path, code: int) -> None:
    """Stores the exit code of the run. Raises OSError."""
    store(output / _EXIT_CODE, f"{code}\n")


def exit_code(output: Path) -> int | None:
    """Returns the exit code of the run that has ended, None if it was killed."""
    try:
        return int((output / _EXIT_CODE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _take(path: Path) -> PidLock:
    deadline = time.monotonic() + TAKEOVER_SECONDS
    while True:
        try:
            return PidLock(path)
        except LockHeld as error:
            if (error.pid and _is_alive(error.pid)) or time.monotonic() > deadline:
                raise ConflictError(
                    f"another run (process {error.pid or 'unknown'}) uses {path.parent}; wait for it, or choose "
                    "another output with -o"
                ) from None
            time.sleep(POLL_SECONDS)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
