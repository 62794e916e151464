"""The connection to the master: handshake, reports, desired state, and reconnection after every loss."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit, urlunsplit

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from determined.client.certificates import Trust, refusal
from determined.errors import DeterminedError
from determined.link.messages import (
    MASTER_MESSAGE,
    DesiredState,
    Hello,
    OpenStream,
    Refuse,
    ReportedState,
    Welcome,
)
from determined_agent.master_link.http import tls

logger = logging.getLogger(__name__)

_FIRST_WAIT, _LAST_WAIT = 0.1, 2.0
_PATIENCE = 10.0
_LOOK_SECONDS = 5.0
_LARGEST = 64 << 20


class Refused(DeterminedError):
    """Raised if the master refuses this agent with its present settings."""


class LinkLost(Exception):
    """Raised if the connection broke; the agent connects again."""


class Agent(Protocol):
    """The interface of the agent that the connection needs."""

    changed: asyncio.Event

    @property
    def hello(self) -> Hello: ...

    def next_report(self) -> ReportedState: ...

    def welcome(self, welcome: Welcome, address: str) -> bool: ...

    def obey(self, desired: DesiredState) -> None: ...

    def sent(self, report: ReportedState) -> None: ...

    def open_stream(self, message: OpenStream) -> None: ...

    def cut_off(self) -> None: ...


class Connection:
    """Keeps the agent connected for ever."""

    def __init__(self, master: str, token: Callable[[], str], agent: Agent, trust: Trust = Trust()) -> None:
        self._master = master
        self._trust = trust
        self._token = token
        self._agent = agent
        self._is_quiet = False
        self._without_since: float | None = time.monotonic()
        """Since when there is no connection; None while there is one."""
        self._broken_by = ""
        """The last unexpected exception, which is logged once."""

    async def run(self) -> None:
        """Runs until Refused is raised, when the master says that another attempt is useless."""
        wait = _FIRST_WAIT
        while True:
            try:
                async with connect(
                    self._url(),
                    additional_headers={"Authorization": f"Bearer {self._token()}"},
                    open_timeout=_PATIENCE,
                    close_timeout=1,
                    ping_interval=5,
                    ping_timeout=10,
                    max_size=_LARGEST,
                    compression=None,
                    proxy=None,
                    **self._tls(),
                ) as link:
                    welcome = await self._greet(link)
                    wait = _FIRST_WAIT
                    await self._talk(link, welcome)
            except InvalidStatus as problem:
                if problem.response.status_code in (401, 403):
                    raise Refused(f"the master at {self._master} rejected the join token") from problem
                self._complain(f"the master answered {problem.response.status_code}")
            except (OSError, LinkLost, WebSocketException, TimeoutError, ValidationError) as problem:
                untrusted = refusal(problem, self._master, self._trust)
                self._complain(untrusted.message if untrusted else str(problem) or type(problem).__name__)
            except Refused:
                raise
            except Exception as problem:
                # The other containers need the connection, whatever fails for one message or container.
                if self._broken_by != repr(problem):
                    self._broken_by = repr(problem)
                    logger.exception("the connection to %s was interrupted; reconnecting", self._master)
                wait = _LAST_WAIT
            finally:
                self._agent.cut_off()
                if self._without_since is None:
                    self._without_since = time.monotonic()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LAST_WAIT)

    async def stays_away(self, seconds: float, has_tasks: Callable[[], bool]) -> None:
        """Returns when there has been no connection for ``seconds``, and no task runs."""
        while True:
            without = 0.0 if self._without_since is None else time.monotonic() - self._without_since
            if without >= seconds and not has_tasks():
                return
            left = seconds - without
            # A task may end at any time; who waits for it does so for long.
            await asyncio.sleep(max(0.05, min(_LOOK_SECONDS, left)) if left > 0 else _LOOK_SECONDS)

    def _url(self) -> str:
        hello = self._agent.hello
        scheme, place, path, _, _ = urlsplit(self._master)
        query = urlencode({"id": hello.agent_id, "pool": hello.pool, "version": hello.version})
        return urlunsplit(("wss" if scheme == "https" else "ws", place, f"{path.rstrip('/')}/agents", query, ""))

    def _tls(self) -> dict[str, Any]:
        if not self._master.startswith("https:"):
            return {}
        return {"ssl": tls(self._trust), "server_hostname": self._trust.name or urlsplit(self._master).hostname}

    async def _greet(self, link: ClientConnection) -> Welcome:
        await link.send(self._agent.hello.model_dump_json())
        async with asyncio.timeout(_PATIENCE):
            answer = MASTER_MESSAGE.validate_json(await link.recv())
        match answer:
            case Refuse(reason=reason, final=True):
                raise Refused(f"the master rejected this agent: {reason}")
            case Refuse(reason=reason):
                raise LinkLost(f"the master rejected the connection for now: {reason}")
            case DesiredState() | OpenStream():
                raise LinkLost("the master sent another message before its welcome message")
        if not self._agent.welcome(answer, _address(link)):
            raise LinkLost(f"the master's epoch {answer.master_epoch} is older than that of an earlier connection")
        logger.info("connected to %s", self._master)
        self._is_quiet = False
        self._without_since = None
        return answer

    async def _talk(self, link: ClientConnection, welcome: Welcome) -> None:
        sending = asyncio.create_task(self._send(link, welcome.heartbeat_seconds))
        try:
            # An error of the sender ends the connection: otherwise the master would wait for its timeout.
            sending.add_done_callback(lambda done: None if done.cancelled() else link.transport.close())
            async for text in link:
                message = MASTER_MESSAGE.validate_json(text)
                if isinstance(message, DesiredState):
                    self._agent.obey(message)
                elif isinstance(message, OpenStream):
                    self._agent.open_stream(message)
                elif isinstance(message, Refuse):
                    if message.final:
                        raise Refused(f"the master rejected this agent: {message.reason}")
                    raise LinkLost(message.reason)
        finally:
            sending.cancel()
            (outcome,) = await asyncio.gather(sending, return_exceptions=True)
            if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketException):
                raise outcome
        raise LinkLost("the master closed the connection")

    async def _send(self, link: ClientConnection, heartbeat: float) -> None:
        while True:
            report = self._agent.next_report()
            await link.send(report.model_dump_json())
            self._agent.sent(report)
            try:
                async with asyncio.timeout(heartbeat):
                    await self._agent.changed.wait()
            except TimeoutError:
                pass

    def _complain(self, why: str) -> None:
        # Once per outage: otherwise the log fills the disk while the master does not answer.
        logger.log(logging.DEBUG if self._is_quiet else logging.WARNING, "not connected to %s: %s", self._master, why)
        self._is_quiet = True


def _address(link: ClientConnection) -> str:
    """Returns the address with which this machine reaches its master, and probably its peers."""
    if link.transport.get_extra_info("socket").family not in (socket.AF_INET, socket.AF_INET6):
        return "127.0.0.1"
    return str(link.local_address[0])
