"""Visits of users at origins of tasks: entered by a ticket that is valid once, and over with the user's sign-in."""

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from determined.errors import ApiError
from determined_master.auth.authentication import Authenticator
from determined_master.auth.principal import Principal
from determined_master.clock import Clock
from determined_master.errors import StorageUnavailable
from determined_master.proxy.task_port import TaskPort

TICKET_SECONDS = 30.0
MAX_PATH_CHARACTERS = 2000
"""Of the address at which a visitor goes on."""
MAX_TICKETS = 64
MAX_VISITS = 256
"""Of one user; the oldest are forgotten beyond these numbers."""


@dataclass(frozen=True)
class SignIn:
    """The sign-in of a user, as a request of theirs has shown it."""

    authenticator: Authenticator
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    user: Principal

    async def may_enter(self, owner_id: int) -> bool:
        """Returns True while the sign-in lasts, and its user may enter the tasks of an owner. Raises StorageUnavailable
        if that cannot be looked at."""
        try:
            principal = await self.authenticator.principal(self.headers, self.cookies)
        except StorageUnavailable:
            raise
        except ApiError:
            return False
        is_same = principal.user_id == self.user.user_id and not principal.is_task
        return is_same and (principal.admin or principal.user_id == owner_id)


@dataclass(eq=False)
class Visit:
    """A user at the origin of a port of a task."""

    service: TaskPort
    owner_id: int
    sign_in: SignIn
    running: set[asyncio.Task[None]] = field(default_factory=set)
    """What is being answered; ended with the visit."""

    async def is_allowed(self) -> bool:
        return await self.sign_in.may_enter(self.owner_id)

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs what answers the visitor. It is cut, without an error, when the visit ends."""
        running = asyncio.create_task(work)
        self.running.add(running)
        try:
            await asyncio.wait({running})
            if not running.cancelled():
                running.result()
        finally:
            self.running.discard(running)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def end(self) -> None:
        for task in self.running:
            task.cancel()


@dataclass(frozen=True)
class Ticket:
    """Admits one visitor to one origin, once and soon."""

    service: TaskPort
    owner_id: int
    sign_in: SignIn
    path: str
    """Where the visitor goes on."""
    expires_at: datetime


class Visits:
    """The tickets and visits of this master, in memory: after a restart a visitor enters by another ticket."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tickets: OrderedDict[bytes, Ticket] = OrderedDict()
        self._visits: OrderedDict[bytes, Visit] = OrderedDict()
        self._programs: set[Visit] = set()

    def make_ticket(self, service: TaskPort, owner_id: int, sign_in: SignIn, path: str) -> str:
        text = secrets.token_urlsafe(32)
        expires_at = self._clock.now() + timedelta(seconds=TICKET_SECONDS)
        self._tickets[_digest(text)] = Ticket(service, owner_id, sign_in, path, expires_at)
        own = [digest for digest, each in self._tickets.items() if each.sign_in.user.user_id == sign_in.user.user_id]
        for digest in own[:-MAX_TICKETS]:
            del self._tickets[digest]
        return text

    async def redeem(self, text: str, service: TaskPort) -> tuple[str, Ticket] | None:
        """Returns the value of a visitor's cookie and the ticket; None for a ticket that is used, late, or for another
        port."""
        ticket = self._tickets.pop(_digest(text), None)
        if ticket is None or ticket.service != service or ticket.expires_at <= self._clock.now():
            return None
        if not await ticket.sign_in.may_enter(ticket.owner_id):
            return None
        value = secrets.token_urlsafe(32)
        user_id = ticket.sign_in.user.user_id
        self._visits[_digest(value)] = Visit(service, ticket.owner_id, ticket.sign_in)
        own = [digest for digest, each in self._visits.items() if each.sign_in.user.user_id == user_id]
        for digest in own[:-MAX_VISITS]:
            self._end(digest)
        return value, ticket

    async def find(self, values: Iterable[str], service: TaskPort) -> Visit | None:
        """Returns the visit of a cookie. Another task's page may have set cookies of the same name: all are tried."""
        for value in values:
            digest = _digest(value)
            visit = self._visits.get(digest)
            if visit is None or visit.service != service:
                continue
            if await visit.is_allowed():
                self._visits.move_to_end(digest)
                return visit
            self._end(digest)
        return None

    @contextmanager
    def program(self, visit: Visit) -> Iterator[None]:
        """Counts what a program does with its user's token as a visit, which ends with the token."""
        self._programs.add(visit)
        try:
            yield
        finally:
            self._programs.discard(visit)

    async def check(self) -> None:
        """Ends the visits whose users are no longer signed in, or may no longer enter."""
        for digest, visit in list(self._visits.items()):
            if not await visit.is_allowed():
                self._end(digest)
        for visit in list(self._programs):
            if not await visit.is_allowed():
                visit.end()

    def end_of(self, service: TaskPort) -> None:
        """Ends the visits at one port."""
        for digest in [digest for digest, visit in self._visits.items() if visit.service == service]:
            self._end(digest)

    def end_all(self) -> None:
        """Ends everything that is being answered; the master stops."""
        for visit in (*self._visits.values(), *self._programs):
            visit.end()

    def _end(self, digest: bytes) -> None:
        visit = self._visits.pop(digest, None)
        if visit is not None:
            visit.end()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
