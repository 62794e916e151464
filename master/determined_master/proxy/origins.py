"""The origins at which this master serves ports of tasks: each has its own, and visitors enter by tickets."""

import asyncio
import errno
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from determined.errors import Conflict
from determined_launch.atomic_file import write_atomic
from determined_master.clock import Clock
from determined_master.proxy.addresses import Layout, Place, origin
from determined_master.proxy.task_port import TaskPort

logger = logging.getLogger(__name__)

MAX_ORIGINS = 2000
"""Origins at a time; the one that was used longest ago makes room."""
IDLE_HOURS = 12.0
REUSE_SECONDS = 3600.0
"""Time without a request after which an origin makes room for another owner's task: a page of it that is still open in
a browser would be a page of the other task's origin."""
OWNERS_SHARE = 4
"""One owner's tasks have at most a part of the ports: beyond it their own origins make room."""
ENDED_SECONDS = 300.0
"""Time for which an origin says that its task has ended."""
MAX_FILE_BYTES = 4 << 20
_TAKEN = (errno.EADDRINUSE, errno.EACCES)
"""Errors of a port that another program, or another user, has."""


class Listener(Protocol):
    """A listening port of the master."""

    async def close(self) -> None: ...


Listen = Callable[[int], Awaitable[Listener]]
"""Listens on a port of the master's host. Raises OSError, of the kind ``EADDRINUSE`` if it is taken."""


@dataclass(frozen=True)
class Opened:
    """What is kept of an origin over a restart of the master."""

    task_id: str
    port: int
    owner_id: int
    listening_port: int
    """0: the origin is a subdomain."""
    cluster: str
    """Address of the cluster's pages, where visitors get a ticket."""


@dataclass(eq=False)
class Origin:
    """An origin that is open."""

    opened: Opened
    listener: Listener | None
    used_at: datetime
    ended_at: datetime | None = None
    """When its task was found to have ended."""

    @property
    def service(self) -> TaskPort:
        return TaskPort(self.opened.task_id, self.opened.port)

    async def close(self) -> None:
        if self.listener is not None:
            await self.listener.close()


class Origins:
    """The open origins. With ports, each listens on a port of its own from the range of the settings."""

    def __init__(self, layout: Layout, ports: range, clock: Clock, file: Path) -> None:
        self.layout = layout
        self._ports, self._clock, self._file = ports, clock, file
        self._next = secrets.randbelow(len(ports))
        """Place in the range of the port that is tried first: a port is used again as late as possible."""
        self._by_service: dict[TaskPort, Origin] = {}
        self._by_port: dict[int, Origin] = {}
        self._by_label: dict[str, Origin] = {}
        self._opening = asyncio.Lock()
        self.listen: Listen | None = None
        """Set by the server, which listens."""

    def __iter__(self) -> Iterator[Origin]:
        return iter(list(self._by_service.values()))

    @property
    def has_ports(self) -> bool:
        return not self.layout.domain

    def at_port(self, port: int) -> Origin | None:
        return self._by_port.get(port)

    def at_label(self, label: str) -> Origin | None:
        return self._by_label.get(label)

    async def open(self, service: TaskPort, owner_id: int, place: Place, cluster: str) -> str:
        """Returns the address of a port of a task, after opening it if it is not open.

        Args:
            service: the port.
            owner_id: the task's owner.
            place: how the visitor has reached the master.
            cluster: address of the cluster's pages for this visitor.

        Raises Conflict if no port of the range is free.
        """
        async with self._opening:
            existing = self._by_service.get(service)
            if existing is None or existing.opened.cluster != cluster:
                listening_port = existing.opened.listening_port if existing else 0
                opened = Opened(service.task_id, service.port, owner_id, listening_port, cluster)
                if existing is not None:
                    existing.opened = opened
                else:
                    existing = await self._add(opened)
                await self._save()
            existing.used_at, existing.ended_at = self._clock.now(), None
        return origin(self.layout, place, service.label, existing.opened.listening_port)

    async def restore(self) -> None:
        """Opens the origins again that were open when the master stopped; those whose port is taken stay closed."""
        for opened in await asyncio.to_thread(_read, self._file):
            if bool(opened.listening_port) != self.has_ports:
                continue
            if opened.listening_port and opened.listening_port not in self._ports:
                continue
            try:
                await self._add(opened)
            except Conflict as problem:
                logger.warning("port %d of task %s is not open any more: %s", opened.port, opened.task_id, problem)

    async def close(self, which: Origin) -> None:
        await self._remove(which)
        await self._save()

    async def close_all(self) -> None:
        for each in self:
            await self._remove(each)

    def due(self) -> list[Origin]:
        """Returns the origins that nobody has used for long, and those whose task has ended for a while."""
        return [each for each in self if self.is_due(each)]

    def is_due(self, which: Origin) -> bool:
        now = self._clock.now()
        idle, ended = now - timedelta(hours=IDLE_HOURS), now - timedelta(seconds=ENDED_SECONDS)
        return which.used_at < idle or (which.ended_at is not None and which.ended_at < ended)

    def note_ended(self, which: Origin) -> None:
        which.ended_at = which.ended_at or self._clock.now()

    def note_use(self, which: Origin) -> None:
        which.used_at = self._clock.now()

    async def _add(self, opened: Opened) -> Origin:
        if len(self._by_service) >= MAX_ORIGINS:
            await self._remove(min(self._by_service.values(), key=lambda each: each.used_at))
        listener = None
        if self.has_ports:
            port, listener = await self._listen(opened.listening_port, opened.owner_id)
            opened = Opened(**{**asdict(opened), "listening_port": port})
        added = Origin(opened, listener, self._clock.now())
        self._by_service[added.service] = self._by_label[added.service.label] = added
        if opened.listening_port:
            self._by_port[opened.listening_port] = added
        return added

    async def _listen(self, wanted: int, owner_id: int) -> tuple[int, Listener]:
        """Listens on a port of the range. Raises Conflict."""
        if self.listen is None:
            raise Conflict("this master serves no pages of tasks")
        if wanted:
            return wanted, await self._listen_at(self.listen, wanted)
        own = [each for each in self._by_port.values() if each.opened.owner_id == owner_id]
        if len(own) < max(1, len(self._ports) // OWNERS_SHARE):
            for _ in self._ports:
                port = self._ports[self._next % len(self._ports)]
                self._next += 1
                if port not in self._by_port:
                    try:
                        return port, await self.listen(port)
                    except OSError as problem:
                        if problem.errno not in _TAKEN:
                            raise Conflict(f"the master cannot listen on port {port}: {problem}") from problem
        return await self._listen_in_place_of(self.listen, own or self._unused())

    def _unused(self) -> list[Origin]:
        before = self._clock.now() - timedelta(seconds=REUSE_SECONDS)
        return [each for each in self._by_port.values() if each.used_at < before]

    async def _listen_in_place_of(self, listen: Listen, candidates: list[Origin]) -> tuple[int, Listener]:
        """Listens on the port of the origin that was used longest ago. Raises Conflict."""
        if not candidates:
            raise Conflict(
                f"no port of {self._ports.start}-{self._ports.stop - 1} is free on the master's machine; an "
                "administrator can set proxy_port_range or proxy_domain"
            )
        oldest = min(candidates, key=lambda each: each.used_at)
        await self._remove(oldest)
        return oldest.opened.listening_port, await self._listen_at(listen, oldest.opened.listening_port)

    @staticmethod
    async def _listen_at(listen: Listen, port: int) -> Listener:
        try:
            return await listen(port)
        except OSError as problem:
            why = "is taken" if problem.errno in _TAKEN else f"cannot be listened on: {problem}"
            raise Conflict(f"port {port} of the master {why}") from problem

    async def _remove(self, which: Origin) -> None:
        self._by_service.pop(which.service, None)
        self._by_label.pop(which.service.label, None)
        self._by_port.pop(which.opened.listening_port, None)
        await which.close()

    async def _save(self) -> None:
        text = json.dumps([asdict(each.opened) for each in self])
        try:
            await asyncio.to_thread(write_atomic, self._file, text)
        except OSError as problem:
            logger.warning("after a restart of the master, open pages of tasks have to be opened again: %s", problem)


def _read(file: Path) -> list[Opened]:
    """Returns what a file keeps; nothing if it is damaged, as visitors can open each port again. Blocking."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            return []
        return [Opened(**each) for each in json.loads(file.read_text())]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError):
        logger.warning("%s is damaged; pages of tasks have to be opened again", file)
        return []
