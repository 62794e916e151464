"""Starts shims by the fork server, which this agent starts once."""

import contextlib
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path

from determined.link.run_folder import RunFolder
from determined_agent.environments.harness_copy import keep_harness
from determined_agent.environments.source_roots import OWN

logger = logging.getLogger(__name__)

# Run by its path; the agent never imports it.
_FORK_SERVER = OWN / "determined_agent" / "task_process" / "fork_server.py"
_SPACE = " " * 512
"""Room for the words that ``ps`` shows of a shim."""


class ShimForks:
    """A fork server and the socket to it. ``open`` starts it; until then, and after ``close``, nothing is forked.

    A server that cannot be started again now is started by a later ``start``.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._socket: socket.socket | None = None
        self._roots = ""
        self._pid = 0
        self._is_open = False
        self._unreaped: set[int] = set()
        """Servers that ended or will end, and whose end was not collected."""

    def open(self) -> None:
        """Starts the server. Blocking."""
        self._roots = os.pathsep.join((str(keep_harness(self._data)), str(OWN)))
        self._begin()
        self._is_open = True

    def start(self, folder: RunFolder, report: int) -> bool:
        """Forks a shim, which reports its start in the pipe ``report``. Returns False if that is not possible now."""
        self._collect()
        if self._socket is None:
            if self._is_open:
                self._begin_again()
            return False
        message = json.dumps({"order": str(folder.order), "log": str(folder.shim_log)}).encode()
        try:
            socket.send_fds(self._socket, [message], [report])
        except BlockingIOError:
            return False  # it does not keep up, or was stopped; nothing that it was asked for is lost
        except OSError:
            logger.warning("the fork server of this agent was ended by another program; it is started again")
            self._leave()
            self._begin_again()
            return False
        return True

    def restart(self) -> None:
        """Kills a server that does not answer, so that it forks no shim later, and starts another. Shims continue."""
        logger.warning("the fork server of this agent does not answer; it is killed and started again")
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self._leave()
        self._begin_again()

    def close(self) -> None:
        """Ends the server after the shims that it was asked for; they continue."""
        self._is_open = False
        self._leave()

    def _leave(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._unreaped.add(self._pid)
            self._pid = 0
        self._collect()

    def _collect(self) -> None:
        for pid in list(self._unreaped):
            try:
                has_ended = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                has_ended = True
            if has_ended:
                self._unreaped.discard(pid)

    def _begin_again(self) -> None:
        try:
            self._begin()
        except OSError as problem:
            logger.warning("cannot start the fork server of this agent for now: %s", problem)

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as failing:
            failing.callback(ours.close)
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", str(_FORK_SERVER), self._roots, _SPACE],
                {"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE],
            )
            failing.pop_all()
        ours.setblocking(False)  # a server that was stopped must not stop the agent
        self._socket = ours
