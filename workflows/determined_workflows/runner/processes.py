"""Starts commands through the supervisor, and takes in how they ended."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import NamedTuple

from determined_workflows.runner import supervisor
from determined_workflows.runner.supervisor import Start

MAX_STARTED_BYTES = 16_384


class End(NamedTuple):
    """How a command ended. ``code`` is None if it could not be started or its end not be stored, for ``reason``."""

    id: str
    code: int | None
    reason: str = ""


class CommandProcesses:
    """The commands of one run. ``lock`` is a descriptor that the supervisor holds as long as it lives."""

    def __init__(self, lock: int) -> None:
        terminal = os.dup(1)
        self._pids, pids = os.pipe()
        os.set_blocking(self._pids, False)
        bash = shutil.which("bash") or "bash"  # found once, not for each command
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", supervisor.__file__, str(lock), str(terminal), str(pids), bash],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(lock, terminal, pids),
            start_new_session=True,
        )
        for descriptor in (terminal, pids):
            os.close(descriptor)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._reports = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._rest = b""
        self._starts: dict[str, Start] = {}
        self._started = b""
        self.is_lost = False
        # If the supervisor is killed, this process inherits the commands and can tell how they ended.
        supervisor.adopt_orphans()

    def fileno(self) -> int:
        """Returns the descriptor that becomes readable when there are ends."""
        return self._reports

    def start(self, id: str, start: Start) -> None:
        """Starts a command; its End comes later."""
        self._starts[id] = start
        self._tell({"start": id, **start._asdict()})

    def signal(self, number: int) -> None:
        """Sends a signal to all commands with their children."""
        self._tell({"signal": number})

    def ends(self) -> list[End]:
        """Waits for reports and returns the commands that ended. Sets ``is_lost`` if the supervisor was killed."""
        data = os.read(self._reports, 65536)
        if not data:
            return self._inherited()
        ends = []
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            report = json.loads(line)
            self._starts.pop(report["id"])
            ends.append(End(report["id"], report.get("code"), report.get("error", "")))
        self._take_pids()
        return ends

    def _take_pids(self) -> None:
        """Empties the pipe of processes. What it says of commands that have ended is forgotten now and then."""
        with suppress(BlockingIOError):
            self._started += os.read(self._pids, 65536)
        if len(self._started) > MAX_STARTED_BYTES:
            lines = self._started.splitlines(keepends=True)
            self._started = b"".join(line for line in lines if line.split()[0].decode() in self._starts)

    def close(self) -> None:
        """Ends the commands that are left, and the supervisor."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        os.close(self._pids)
        supervisor.adopt_orphans(False)

    def _tell(self, message: dict[str, object]) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._input, data) :]
        except BrokenPipeError:
            pass  # `ends` notices it

    def _inherited(self) -> list[End]:
        """Kills the commands of a supervisor that is gone, and stores the ends of those that had ended before."""
        self.is_lost = True
        self._process.wait()  # only then its children are children of this process
        self._take_pids()
        started = (line.decode().split() for line in self._started.splitlines())
        pids = {id: int(pid) for id, pid in started if id in self._starts}
        for pid in pids.values():
            supervisor.kill_group(pid)
        outcomes = []
        for id, start in self._starts.items():
            code = _reaped(pids[id]) if id in pids else -signal.SIGKILL
            if code == -signal.SIGKILL:
                outcomes.append(End(id, None, "its supervisor was killed"))
            else:
                supervisor.store(start.stat, start.text(code))
                outcomes.append(End(id, code))
        self._starts.clear()
        return outcomes


def _reaped(pid: int) -> int:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:  # the supervisor had reaped it, and so stored its end, but could not report it
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(status)
