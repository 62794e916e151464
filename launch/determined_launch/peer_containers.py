"""Containers other than the chief's: they start the processes that the chief's launcher requests, and end with it."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from determined_launch import containers, hang_watchdog, process, processes, runner, worker_environment
from determined_launch.channel import client, frames
from determined_launch.channel.frames import Closed, Connection
from determined_launch.channel.server import Server, Verb
from determined_launch.channel.verbs import Attend, Run
from determined_launch.errors import LaunchError
from determined_launch.launcher import LaunchContext
from determined_launch.secure_shell import Sshd

PATIENCE_SECONDS = 600.0
"""Time limit for containers to find each other; start-up hooks may take long on one of them."""
_NOTE_SECONDS = 10.0
_LEAVE_SECONDS = 0.5


class Peers:
    """The chief's connections to the other containers."""

    def __init__(self, connections: list[Connection]) -> None:
        self._connections = connections

    def tell_end(self, code: int) -> None:
        for connection in self._connections:
            with contextlib.suppress(Closed):
                connection.send_json(frames.EXIT, {"code": code})


@contextlib.contextmanager
def peers(context: LaunchContext) -> Iterator[Peers]:
    """Connects to every other container. A peer ends if this block ends without a message to it."""
    connections: list[Connection] = []
    try:
        for rank in range(1, context.facts.nodes):
            connections.append(reach(context, rank, {"verb": "attend"})[0])
        yield Peers(connections)
    finally:
        for connection in connections:
            connection.close()


def reach(context: LaunchContext, rank: int, request: Mapping[str, Any]) -> tuple[Connection, Any]:
    """Returns a connection to the server of another container, and its answer.

    Raises LaunchError if it does not come.
    """
    key, address = containers.key(context.environ), context.facts.addresses[rank]
    port = containers.ports(context.facts, context.environ)[rank]
    began = time.monotonic()
    for patience in (_NOTE_SECONDS, PATIENCE_SECONDS):
        try:
            connection = client.connect(address, port, key, request, patience=patience)
            return connection, connection.receive_json(frames.ANSWER)
        except OSError as error:
            problem = error
        if time.monotonic() - began < PATIENCE_SECONDS:
            context.say(f"waiting for container {rank}: {problem}")
    raise LaunchError(f"container {rank} did not connect: {problem}")


def attend(context: LaunchContext, mark: str, *, restarts: bool) -> int:
    """Serves requests until the end.

    Returns the first failed worker's code of this container, else the chief's code.
    """
    facts, environ = context.facts, context.environ
    ended: list[int | None] = []
    told = threading.Event()

    def note(code: int | None) -> None:
        ended.append(code)
        told.set()

    verb = Attend(note)
    shell: dict[str, Verb] = {
        "run": Run(worker_environment.bare(environ, context.run_folder), os.getcwd()),
    }
    if context.settings.remote_shell == "ssh":
        port = containers.shell_ports(facts, environ)[facts.rank]
        shell = {"sshd": Sshd(context.run_folder, context.own_address, port)}
    server = Server(
        context.own_address,
        containers.ports(facts, environ)[facts.rank],
        containers.key(environ),
        {**shell, "attend": verb, **hang_watchdog.verbs(context)},
    )
    processes.adopt_orphans()
    workers = runner.Workers(context.exits, mark, restart=restarts)
    asked: list[int] = []
    began = time.monotonic()
    with process.SignalForwarder(lambda number: _pass_on(number, asked)):
        try:
            while not told.wait(runner.TICK_SECONDS):
                if not asked and workers.are_lost():
                    return workers.code(1)
                if asked and not processes.wrappers_below(os.getpid()):
                    return workers.code(128 + asked[0])
                if not verb.has_begun.is_set() and time.monotonic() - began > PATIENCE_SECONDS:
                    raise LaunchError(f"the chief's container, {facts.chief}, did not connect")
            _let_leave()
        finally:
            server.close()
            processes.kill_below(os.getpid())
    if ended[0] is None:
        context.say(f"lost the connection to the chief's container, {facts.chief}")
        return workers.code(1)
    return workers.code(ended[0])


def _pass_on(number: int, asked: list[int]) -> None:
    if number in runner.ENDING:
        asked.append(number)
    for pid in processes.wrappers_below(os.getpid()):
        processes.send(pid, number)


def _let_leave() -> None:
    """Waits for the exit records of processes that the launcher has just ended."""
    until = time.monotonic() + _LEAVE_SECONDS
    while processes.wrappers_below(os.getpid()) and time.monotonic() < until:
        time.sleep(0.01)
