"""Runs a program beside a task, in its namespaces and with its user and limits: ``python -I -S enter_task.py ORDER
STATUS ROOTS``, where the first two are descriptors of pipes: the order comes from one, the end goes into the other.

Standard library only. Stays as the parent of the program, ends what the program leaves, and ends both with the agent.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import shutil
import signal
import sys
import termios
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

if __name__ == "__main__":
    # Last, because modules beside an installed package may have names of the standard library.
    sys.path += sys.argv[3].split(os.pathsep)

from determined_agent.task_process import processes
from determined_agent.task_process.identity import Identity
from determined_launch import process_table

NAMESPACES = ("user", "mnt", "ipc", "uts", "net", "cgroup")
"""In the order in which they are entered: the first gives the right to enter the others."""
PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that this process passes on to the program."""
_PATIENCE_SECONDS = 2.0
MAX_STATUS_BYTES = 16
_NAME_WIDTH = 26
"""Columns of the name in ``/proc/PID/limits``."""


def main(order_pipe: int, status_pipe: int) -> int:
    """Runs one program. Returns 0; how it ended is in the pipe."""
    with open(order_pipe, encoding="utf-8") as file:
        order: dict[str, Any] = json.load(file)
    os.set_inheritable(status_pipe, False)
    processes.become_subreaper()
    processes.die_with_parent(order["agent"])
    has_terminal = os.isatty(0)
    if has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    problem_out, problem_in = os.pipe()
    ended_out, ended_in = os.pipe()
    # One that comes before the child is known would end this process, and the program with it.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        keeper = _fork(order, problem_in, ended_in, has_terminal=has_terminal)
    except OSError as problem:
        _write(status_pipe, {"error": f"cannot enter the task: {problem.strerror}"})
        return 0
    os.close(problem_in)
    os.close(ended_in)
    for number in PASSED_ON:
        signal.signal(number, lambda got, _frame: _pass_on(os.kill, keeper, got))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    for descriptor in (0, 1, 2):  # the program's, and not this process's: its end is theirs
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    with open(problem_out, encoding="utf-8") as file:
        reason = file.read()
    ended = os.read(ended_out, MAX_STATUS_BYTES)
    status = int(ended) if ended else os.waitpid(keeper, 0)[1]
    own = os.getpid()
    processes.kill_all(lambda: _left_below(own), patience=_PATIENCE_SECONDS)
    _write(status_pipe, {"error": reason} if reason else _outcome(status))
    return 0


def _fork(order: Mapping[str, Any], problem: int, ended: int, *, has_terminal: bool) -> int:
    """Starts the keeper of the program and returns its pid.

    The keeper is in the namespaces of the task: what the program leaves would become a child of the first process of
    that pid namespace, and not of one outside. It stays until this process ends it.
    """
    target: int = order["pid"]
    spaces = _foreign(target)
    pids = _open_foreign(target, "pid")
    found = process_table.find(target)
    if found is None or found.started != order["started"]:
        raise ProcessLookupError(3, "it has just ended")
    limits = _limits_of(target)
    processors = os.sched_getaffinity(target)
    # A user namespace comes first, and only the program enters one.
    if pids is not None and "user" not in spaces:
        _enter(pids)
    child = os.fork()
    if child:
        for descriptor in (*spaces.values(), *([pids] if pids is not None else [])):
            os.close(descriptor)
        return child
    try:
        processes.die_with_parent(0)
        for descriptor in spaces.values():
            _enter(descriptor)
        processes.die_with_parent(0)  # the kernel forgets it when a process enters a user namespace
        processes.become_subreaper()
        processes.become_untraceable()  # by the program, whose user may be this one's
        child = os.fork()
        if child:
            os.close(problem)
            _keep(child, ended)
        processes.die_with_parent(0)
        if has_terminal:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
        else:
            os.setsid()
        _execute(order, limits, processors)
    except BaseException as error:
        os.write(problem, f"{error}".encode())
        os._exit(127)


def _keep(child: int, ended: int) -> NoReturn:
    """Passes signals on to the program, says how it ended, and stays as the parent of what it has left."""
    for number in PASSED_ON:
        signal.signal(number, lambda got, _frame: _pass_on(os.killpg, child, got))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    for descriptor in (0, 1, 2):  # the program's; their end is its end
        os.close(descriptor)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            signal.pause()
            continue
        if pid == child:
            os.write(ended, b"%d" % status)


def _execute(order: Mapping[str, Any], limits: Mapping[int, tuple[int, int]], processors: set[int]) -> NoReturn:
    for number, (soft, hard) in limits.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(number, (soft, hard))
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, processors)
    os.umask(order["umask"])
    identity = Identity.from_json(order["identity"])
    if identity is not None:
        identity.become()
        processes.die_with_parent(0)  # the kernel forgets it when a process changes its user
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    environment: dict[str, str] = order["environment"]
    os.chdir(order["workdir"])
    argv: list[str] = order["argv"] or [_shell(environment, order["shells"])]
    try:
        os.execvpe(argv[0], argv, environment)
    except OSError as error:
        raise OSError(f"cannot run {argv[0]!r} in the task: {error.strerror}") from error


def _limits_of(target: int) -> dict[int, tuple[int, int]]:
    """Returns the soft and the hard limits of a process, by number. By its file, since ``prlimit`` of a process of
    another user needs a capability that root may lack."""
    with open(f"/proc/{target}/limits", encoding="ascii") as file:
        lines = file.read().splitlines()[1:]  # one for each limit, in the order of their numbers
    pairs = (line[_NAME_WIDTH:].split()[:2] for line in lines)
    return {number: (_limit(soft), _limit(hard)) for number, (soft, hard) in enumerate(pairs)}


def _limit(text: str) -> int:
    return resource.RLIM_INFINITY if text == "unlimited" else int(text)


def _shell(environment: Mapping[str, str], shells: list[str]) -> str:
    for name in (environment.get("SHELL", ""), *shells):
        found = shutil.which(name, path=environment.get("PATH", os.defpath)) if name else None
        if found:
            return found
    raise OSError("the task has no shell")


def _foreign(target: int) -> dict[str, int]:
    """Returns the namespaces in which the task is and this process is not, but for that of pids."""
    opened = {name: _open_foreign(target, name) for name in NAMESPACES}
    return {name: descriptor for name, descriptor in opened.items() if descriptor is not None}


def _open_foreign(target: int, name: str) -> int | None:
    """Returns a descriptor of a namespace; None if it is this process's own, or the kernel has none of this name."""
    try:
        if os.readlink(f"/proc/{target}/ns/{name}") == os.readlink(f"/proc/self/ns/{name}"):
            return None
    except FileNotFoundError:
        return None
    return os.open(f"/proc/{target}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


def _enter(namespace: int) -> None:
    if processes.libc.setns(namespace, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _pass_on(send: Callable[[int, int], None], pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        send(pid, number)


def _left_below(own: int) -> set[int]:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return set(process_table.descendants(own))


def _outcome(status: int) -> dict[str, int]:
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"code": os.WEXITSTATUS(status)}


def _write(pipe: int, status: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the agent has gone
        os.write(pipe, json.dumps(status).encode())


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
