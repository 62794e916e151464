"""The parent of a run's commands: a program that outlives the runner, and stores how each command ended.

It has a session of its own and holds the lock of the output. It reads one JSON object per line from its input:
``{"start": ID, …}`` with the fields of ``Start``, or ``{"signal": NUMBER}`` for all commands. It writes
``{"id": ID, "code": N}`` after the end of a command is stored; if it cannot be started or stored,
``{"id": ID, "error": TEXT}``. To a pipe of its own, which wakes nobody, it writes ``ID PID`` when a command starts. At
the end of its input the runner is gone or has finished: the commands that are left are killed, nothing is stored for
them, and the program ends. Standard library only.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple

MARK = "DETENT_RUNNER_COMMAND"
"""Variable of each command: the file of the lock and the id. It tells what belongs to a run whose parents are gone."""
DURABLE_SECONDS = 1.0
"""The end of a command that took this long survives a power failure; for others it is cheaper to run them again."""
_GATE = "read -r _ || exit 125; exec </dev/null\n"
"""Before its command a shell waits for a line, which it gets after the runner was told of its process."""
_SEPARATORS = frozenset(";&|\n(`")
_WAITING = "trap 'exit 143' TERM\n"
"""Bash replaces itself by a simple command. Before several it waits: when it has ended, its group is killed, and the
program that still saves its work with it."""
_PR_SET_CHILD_SUBREAPER = 36
_PROC = "/proc"
_LOOKS, _LOOK_SECONDS = 100, 0.001
"""Looks for the environment of a process that is just starting a program, which takes about a millisecond."""
_TO_DEFAULT = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ]


class Start(NamedTuple):
    """What to start: a command of bash, and the file and the texts that store its states."""

    command: str
    resource: str
    log: str | None
    stat: str
    running: str
    finished: str
    failed: str

    def text(self, code: int) -> str:
        return self.failed if code else self.finished


class Command(NamedTuple):
    """A command that has been started."""

    id: str
    start: Start
    began: float


def store(path: str | os.PathLike[str], text: str, *, is_durable: bool = False) -> None:
    """Replaces a file. Readers see the old content or the new content, never a part. Raises OSError.

    The draft has one name for each file: one run at a time writes to an output, and what a killed one left is replaced.
    """
    folder, name = os.path.split(os.fspath(path))
    draft = os.path.join(folder, f".{name}.draft")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(draft, path)


def adopt_orphans(is_on: bool = True) -> None:
    """Makes this process the parent of processes below it whose own parents end."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Sends a signal to a process, if it is still there."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_group(group: int, number: int = signal.SIGKILL) -> None:
    """Sends a signal to a process group, if it is still there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


class Supervisor:
    """The commands of one run. ``owner`` names the output in the environment of its commands."""

    def __init__(self, owner: str, terminal: int, pids: int, bash: str) -> None:
        self._owner = owner
        self._pid = os.getpid()
        self._terminal = terminal
        self._pids = pids
        self._commands: dict[int, Command] = {}
        self._ending: set[int] = set()
        self._environment = dict(os.environb)
        self._bash = bash
        self._wakeup, writer = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def run(self) -> None:
        """Starts and ends commands until the input ends."""
        rest = b""
        while True:
            ready, _, _ = select.select([0, self._wakeup], [], [])
            if self._wakeup in ready:
                os.read(self._wakeup, 65536)
                self._settle_ended()
            if 0 in ready:
                data = os.read(0, 65536)
                if not data:
                    break
                # A line without its end was cut off by the runner's end, and is not obeyed.
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
        self._abandon()

    def _obey(self, message: dict[str, Any]) -> None:
        if "signal" in message:
            self._ending.update(self._commands)
            for pid in self._commands:
                kill_group(pid, message["signal"])
            return
        id = message.pop("start")
        start = Start(**message)
        try:
            store(start.stat, start.running)
            pid, gate = self._spawn(id, start)
        except OSError as error:
            _report(id=id, error=f"{error.filename or 'bash'}: {error.strerror}")
            return
        self._commands[pid] = Command(id, start, time.monotonic())
        with suppress(BrokenPipeError):
            os.write(self._pids, f"{id} {pid}\n".encode())
        with suppress(BrokenPipeError):
            os.write(gate, b"\n")
        os.close(gate)

    def _spawn(self, id: str, start: Start) -> tuple[int, int]:
        """Returns the process and the descriptor at which it waits. Raises OSError."""
        own = {"CUDA_VISIBLE_DEVICES": start.resource, MARK: self._mark(id)}
        environment = {**self._environment, **{os.fsencode(name): os.fsencode(value) for name, value in own.items()}}
        output = self._terminal
        if start.log is not None:
            output = os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        reader, gate = os.pipe()
        files = [
            (os.POSIX_SPAWN_DUP2, descriptor, target) for target, descriptor in ((0, reader), (1, output), (2, output))
        ]
        try:
            pid = os.posix_spawn(
                self._bash,
                ["bash", "-c", _GATE + (_WAITING if _SEPARATORS.intersection(start.command) else "") + start.command],
                environment,
                file_actions=files,
                setsid=True,
                setsigdef=_TO_DEFAULT,
            )
        except OSError:
            os.close(gate)
            raise
        finally:
            os.close(reader)
            if start.log is not None:
                os.close(output)
        return pid, gate

    def _settle_ended(self) -> None:
        """Stores the ends of commands, and reaps children of commands."""
        with suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._settle(found)
        self._end_orphans()

    def _settle(self, status: os.waitid_result, *, is_abandoned: bool = False) -> None:
        # A process is not reaped before its group is gone, so that its id cannot be that of another process, and not
        # before its end is stored: if this program is killed, the runner is its parent and stores it.
        command = self._commands.get(status.si_pid)
        if command is not None:
            kill_group(status.si_pid)
            code = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
            if not (is_abandoned and code == -signal.SIGKILL):
                # A command that was asked to end may have ended well without having done its work.
                self._store(command, -signal.SIGTERM if code == 0 and status.si_pid in self._ending else code)
            del self._commands[status.si_pid]
            self._ending.discard(status.si_pid)
        os.waitpid(status.si_pid, 0)

    def _store(self, command: Command, code: int) -> None:
        try:
            is_durable = time.monotonic() - command.began > DURABLE_SECONDS
            store(command.start.stat, command.start.text(code), is_durable=is_durable)
        except OSError as error:
            _report(id=command.id, error=f"{command.start.stat}: {error.strerror}; it will run again")
        else:
            _report(id=command.id, code=code)

    def _end_orphans(self) -> None:
        """Kills processes that a command has left behind in another session or group."""
        children = self._children() - set(self._commands)
        if children:
            marks = {self._mark(command.id) for command in self._commands.values()}
            for pid in children:
                if mark_of(pid) not in marks:
                    kill(pid)

    def _mark(self, id: str) -> str:
        return f"{self._owner}:{self._pid}.{id}"

    def _children(self) -> set[int]:
        try:
            with open(f"/proc/self/task/{self._pid}/children", encoding="ascii") as file:
                return set(map(int, file.read().split()))
        except OSError:  # a kernel without this file
            return set()

    def _abandon(self) -> None:
        """Kills all commands with all that they have started. One that had ended before has its end stored."""
        for pid in self._commands:
            kill_group(pid)
        with suppress(ChildProcessError):
            while True:
                for pid in self._children() - set(self._commands):
                    kill(pid)
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
                if found is not None:
                    self._settle(found, is_abandoned=True)


def mark_of(pid: int) -> str:
    """Returns the mark in the environment of a process, or nothing."""
    content = _environment(pid)
    for _ in range(_LOOKS):
        if content or not _is_starting_program(pid):
            break
        time.sleep(_LOOK_SECONDS)
        content = _environment(pid)
    found = [each for each in content.split(b"\0") if each.startswith(f"{MARK}=".encode())]
    return os.fsdecode(found[-1]).partition("=")[2] if found else ""


def _environment(pid: int) -> bytes:
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _is_starting_program(pid: int) -> bool:
    """Returns True while Linux shows neither the old nor the new environment of a process that replaces its program."""
    try:
        os.readlink(f"{_PROC}/{pid}/exe")  # a thread of the kernel and a process that has ended have none
        with open(f"{_PROC}/{pid}/cmdline", "rb") as file:
            return not file.read()
    except OSError:
        return False


def end_leftovers(owner: str) -> None:
    """Kills the commands of an earlier run whose runner and supervisor were both killed, and waits for their end."""
    while found := [
        pid for name in os.listdir("/proc") if name.isdigit() and mark_of(pid := int(name)).startswith(f"{owner}:")
    ]:
        for pid in found:
            kill(pid)
        time.sleep(0.01)


def _report(**fields: object) -> None:
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(fields).encode() + b"\n")


def main() -> None:
    lock, terminal, pids = map(int, sys.argv[1:4])
    for descriptor in (lock, terminal, pids):
        os.set_inheritable(descriptor, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    found = os.fstat(lock)
    owner = f"{found.st_dev}.{found.st_ino}"
    end_leftovers(owner)
    Supervisor(owner, terminal, pids, bash=sys.argv[4]).run()


if __name__ == "__main__":
    main()
