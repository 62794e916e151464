"""Requests that a container serves for the chief: ``run`` a command, and ``attend`` until the chief ends."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from determined_launch import process, processes
from determined_launch.channel import frames
from determined_launch.channel.frames import Closed, Connection

_PIECE = 65536
_GRACE_SECONDS = 5.0


class Run:
    """The request ``run``: runs a command line with ``sh`` and ends it if the caller disconnects."""

    def __init__(self, environ: Mapping[str, str], folder: str) -> None:
        self._environ = environ
        self._folder = folder

    def __call__(self, connection: Connection, request: Mapping[str, Any]) -> None:
        child = subprocess.Popen(
            ["sh", "-c", str(request.get("command", ""))],
            env=dict(self._environ),
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        pumps = [
            threading.Thread(target=_pump, args=(source, connection, kind), daemon=True)
            for source, kind in ((child.stdout, frames.STDOUT), (child.stderr, frames.STDERR))
        ]
        listener = threading.Thread(target=_listen, args=(connection, child), daemon=True)
        for thread in (*pumps, listener):
            thread.start()
        code = process.exit_code(child.wait())
        for pump in pumps:
            pump.join(1.0)
        connection.send_json(frames.EXIT, {"code": code})


class Attend:
    """The request ``attend``: passes the chief's exit code to ``ended``, or None if the chief disconnected."""

    def __init__(self, ended: Callable[["int | None"], None]) -> None:
        self._ended = ended
        self.has_begun = threading.Event()

    def __call__(self, connection: Connection, request: Mapping[str, Any]) -> None:
        self.has_begun.set()
        try:
            connection.send_json(frames.ANSWER, {"here": True})
            value = connection.receive_json(frames.EXIT)
            self._ended(int(value["code"]))
        except (Closed, KeyError, TypeError, ValueError):
            self._ended(None)


def _pump(source: "IO[bytes] | None", connection: Connection, kind: int) -> None:
    assert source is not None
    with source:
        try:
            while data := os.read(source.fileno(), _PIECE):
                connection.send(kind, data)
        except Closed:
            pass


def _listen(connection: Connection, child: "subprocess.Popen[bytes]") -> None:
    """Passes signals of the caller to the command's session; ends the session if the caller disconnects."""
    try:
        while True:
            value = connection.receive_json(frames.SIGNAL)
            _signal(child.pid, int(value["signal"]))
    except (Closed, KeyError, TypeError, ValueError):
        pass
    if child.poll() is None:
        _signal(child.pid, signal.SIGTERM)
        try:
            child.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            processes.kill_below(child.pid)
            _signal(child.pid, signal.SIGKILL)


def _signal(session: int, number: int) -> None:
    try:
        os.killpg(session, number)
    except OSError:  # it has ended, is another user's, or there is no such signal
        pass
