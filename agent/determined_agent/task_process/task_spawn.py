"""Starts a task from an order: pipes, session, namespaces, exec. Used by the shim; standard library only."""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from determined_agent.task_process import namespaces, processes
from determined_agent.task_process.identity import Identity

RUN_TASK = "determined.exec.run_task"
"""The module that a task runs first, unless it has hooks."""
Programs = Mapping[str, Callable[[], int]]
"""Name of a module → its ``main``, which ends with ``exec`` or returns an exit code."""


class TaskNotStarted(Exception):
    """Raised if the task could not start; none of its processes runs."""


class StartedTask(NamedTuple):
    """A task that was executed. ``pid`` is the task's, or that of the first process of its pid namespace."""

    pid: int
    stdout: int
    stderr: int
    report: int | None = None
    """Pipe into which the first process of a pid namespace writes the task's own status."""

    def outcome(self, status: int) -> dict[str, int]:
        """Returns ``{code}`` or ``{signal}`` for the wait status of ``pid``."""
        if self.report is not None:
            written = os.read(self.report, 64)
            if written:
                status = int(written)
        if os.WIFSIGNALED(status):
            return {"signal": os.WTERMSIG(status)}
        return {"code": os.WEXITSTATUS(status)}


def start_task(order: Mapping[str, Any], programs: Programs, *, close: tuple[int, ...] = ()) -> StartedTask:
    """Starts the task.

    Args:
        order: what the agent has written. If its ``program`` is one of ``programs``, the task's process runs that
            instead of a new Python, which would have to import it first.
        programs: those that this process has imported.
        close: descriptors that the task's processes close.
    """
    space = namespaces.Namespace.from_json(order.get("namespace") or {})
    identity = Identity.from_json(order.get("identity"))
    parent = os.getpid()
    out, err, problem, report = os.pipe(), os.pipe(), os.pipe(), os.pipe()
    has_pids = space.pids and namespaces.new_pids()
    if identity is not None:
        for pipe in (out[1], err[1]):  # a task may open /dev/stdout again
            os.fchown(pipe, identity.uid, identity.gid)
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in (*close, out[0], err[0], problem[0], report[0]):
                os.close(descriptor)
            os.setsid()
            # The parent's pid is not visible inside a pid namespace.
            processes.die_with_parent(0 if has_pids else parent)
            space.enter(proc=has_pids, identity=identity)
            if has_pids:
                _be_first(report[1], problem[1])
            if identity is not None:
                identity.become()
                # The kernel forgets it when a process changes its user.
                processes.die_with_parent(0 if has_pids else parent)
            _execute(order, programs.get(order.get("program", "")), out[1], err[1])
        except BaseException as error:
            _confess(problem[1], error)
    for descriptor in (out[1], err[1], problem[1], report[1]):
        os.close(descriptor)
    with open(problem[0], "rb") as reader:
        reason = reader.read()
    if reason:
        os.waitpid(pid, 0)
        raise TaskNotStarted(json.loads(reason))
    os.set_blocking(report[0], False)
    return StartedTask(pid, out[0], err[0], report[0] if has_pids else None)


def _be_first(report: int, problem: int) -> None:
    """Stays as the first process of the pid namespace and never returns; returns in its child, the task.

    When it ends, the kernel ends every other process of the namespace.
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        processes.die_with_parent(0)
        return
    os.close(problem)
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
    # The task's pipes must end with the task's processes, not with this process.
    os.closerange(3, report)
    os.closerange(report + 1, 1 << 16)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            os._exit(0)
        if pid == child:
            os.write(report, str(status).encode())
            os._exit(0)


def _execute(order: Mapping[str, Any], program: Callable[[], int] | None, out: int, err: int) -> NoReturn:
    void = os.open(os.devnull, os.O_RDONLY)
    os.dup2(void, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(order["workdir"])
    os.umask(order.get("umask", 0o022))
    # Python and the shim ignore some signals; a task starts with the default actions.
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass
    inherited = os.environ if order.get("inherits_environment") else {}
    environment = {**inherited, **order["environment"]}
    if program is not None:
        _run(program, environment)
    os.execvpe(order["argv"][0], list(order["argv"]), environment)


def _run(program: Callable[[], int], environment: Mapping[str, str]) -> NoReturn:
    """Runs a program as a Python of its own would."""
    os.closerange(3, 1 << 16)  # as exec would; the shim learns in this way that the task has started
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        code = program()
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _confess(problem: int, error: BaseException) -> NoReturn:
    os.write(problem, json.dumps(f"{error}").encode())
    os._exit(127)
