"""Connects the containers of a trial with roles: they exchange ports before the start and tell each other the end."""

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined_launch import containers, hang_watchdog, peer_containers
from determined_launch.channel import frames
from determined_launch.channel.frames import Closed, Connection
from determined_launch.channel.server import Server
from determined_launch.errors import LaunchError
from determined_launch.launcher import LaunchContext
from determined_launch.role_environment import RolePorts
from determined_launch.role_plan import RolePlan

VERB = "roles"
_LOST = 1


class _End:
    """The end of the other side of a connection: a code, or the loss of the connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.code: int | None = None
        self.is_lost = False

    def listen(self) -> None:
        """Receives codes until the connection ends. 0 says that the processes that are no daemons have ended."""
        try:
            while True:
                self.code = int(self.connection.receive_json(frames.EXIT)["code"])
        except (Closed, KeyError, TypeError, ValueError):
            self.is_lost = True

    def tell(self, code: int) -> None:
        with contextlib.suppress(Closed):
            self.connection.send_json(frames.EXIT, {"code": code})


class Chief:
    """The chief's connections to the other containers. The launcher's watch calls it again and again; a code that is
    returned ends this container.

    Raises LaunchError if a container does not come.
    """

    def __init__(self, context: LaunchContext, own: RolePorts, folder: Path) -> None:
        self._context = context
        self._folder = folder
        self._others: dict[int, _End] = {}
        answers = [own.to_json()]
        for rank in range(1, context.facts.nodes):
            connection, answer = peer_containers.reach(context, rank, {"verb": VERB})
            self._others[rank] = _End(connection)
            answers.append(answer)
        self.ports = RolePorts.merged(answers)
        for other in self._others.values():
            other.connection.send_json(frames.ANSWER, self.ports.to_json())
            threading.Thread(target=other.listen, name="roles", daemon=True).start()

    def __call__(self) -> int | None:
        mark = RolePlan.end_mark(self._folder)
        for rank, other in self._others.items():
            if other.code:
                return other.code
            if other.is_lost and not mark.exists():  # after the end each leaves when its own daemons have ended
                self._context.say(f"lost the connection to container {rank}, {self._context.facts.addresses[rank]}")
                return _LOST
        is_done = RolePlan.done_mark(self._folder).exists() and all(each.code == 0 for each in self._others.values())
        if is_done and not mark.exists():
            mark.touch()
            self.tell(0)
        return None

    def tell(self, code: int) -> None:
        """Ends the other containers with this code."""
        for other in self._others.values():
            other.tell(code)

    def close(self) -> None:
        for other in self._others.values():
            other.connection.close()


class Member:
    """The connection of another container to the chief, with the same calls."""

    def __init__(self, context: LaunchContext, own: RolePorts, folder: Path) -> None:
        self._context = context
        self._folder = folder
        self._own = own
        self._chief: _End | None = None
        self._has_told = False
        self._met = threading.Event()
        facts, environ = context.facts, context.environ
        self._server = Server(
            context.own_address,
            containers.ports(facts, environ)[facts.rank],
            containers.key(environ),
            {VERB: self._serve, **hang_watchdog.verbs(context)},
        )
        if not self._met.wait(peer_containers.PATIENCE_SECONDS):
            self._server.close()
            raise LaunchError(f"the chief's container, {facts.chief}, did not connect")

    def _serve(self, connection: Connection, _: Mapping[str, Any]) -> None:
        connection.send_json(frames.ANSWER, self._own.to_json())
        self.ports = RolePorts.merged([connection.receive_json(frames.ANSWER)])
        self._chief = _End(connection)
        self._met.set()
        self._chief.listen()

    def __call__(self) -> int | None:
        chief = self._chief
        assert chief is not None
        if chief.code:
            return chief.code
        if chief.is_lost and chief.code is None:
            self._context.say(f"lost the connection to the chief's container, {self._context.facts.chief}")
            return _LOST
        if chief.code == 0:
            RolePlan.end_mark(self._folder).touch()
        if not self._has_told and RolePlan.done_mark(self._folder).exists():
            self.tell(0)
        return None

    def tell(self, code: int) -> None:
        """Tells the chief that this container ends, with this code."""
        self._has_told = True
        if self._chief is not None:
            self._chief.tell(code)

    def close(self) -> None:
        self._server.close()
