"""Starts commands in process groups of their own, and ends them with all their children."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from determined_workflows.runner import guard

GRACE_SECONDS = 5.0
_GATE = "read -r _ || exit 125; exec </dev/null\n"
"""Before its command a shell waits for a line: the guard has to know its process group first."""


class CommandProcesses:
    """The commands of one run. ``lock`` is the descriptor that the guard holds as long as it lives."""

    def __init__(self, lock: int) -> None:
        self._guard = subprocess.Popen(
            [sys.executable, "-S", "-E", guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(lock,),
            start_new_session=True,
        )
        self._mutex = threading.Lock()
        self._groups: set[int] = set()
        self.is_stopping = False

    def run(self, command: str, resource: str, log: IO[bytes] | None = None) -> int:
        """Runs a command in bash and returns its exit code. Its output goes to ``log``, or where the runner's goes.

        Raises OSError. Ends processes that the command has left in its process group.
        """
        environment: Mapping[str, str] = {**os.environ, "CUDA_VISIBLE_DEVICES": resource}
        with self._mutex:
            if self.is_stopping:
                return -signal.SIGTERM
            process = subprocess.Popen(
                ["bash", "-c", _GATE + command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            self._groups.add(process.pid)
            self._tell(f"+{process.pid}\n")
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as gate:
            gate.write(b"\n")
        # The process is not reaped before its group is gone, so that its id cannot be that of another process.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._mutex:
            self._groups.discard(process.pid)
            _signal(process.pid, signal.SIGKILL)
            self._tell(f"-{process.pid}\n")
        return process.wait()

    def stop(self) -> None:
        """Asks all commands to end, and kills those that have not ended after the grace period. Does not wait."""
        with self._mutex:
            self.is_stopping = True
            for group in self._groups:
                _signal(group, signal.SIGTERM)
        timer = threading.Timer(GRACE_SECONDS, self.kill)
        timer.daemon = True
        timer.start()

    def kill(self) -> None:
        """Kills all commands."""
        with self._mutex:
            self.is_stopping = True
            for group in self._groups:
                _signal(group, signal.SIGKILL)

    def close(self) -> None:
        """Ends the guard."""
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):
            self._guard.stdin.close()
        self._guard.wait()

    def _tell(self, line: str) -> None:
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):
            self._guard.stdin.write(line.encode())
            self._guard.stdin.flush()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
