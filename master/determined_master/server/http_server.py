"""The HTTP server: uvicorn, and a sweeper that ends idle and dripping connections."""

import asyncio
import contextlib
import copy
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from determined_master.notifications import Notifications
from determined_master.proxy.cookies import VISIT

logger = logging.getLogger(__name__)

HEADER_SECONDS = 15.0
"""Time limit for the head of a request."""
BODY_GRACE_SECONDS = 30.0
MIN_BODY_BYTES_PER_SECOND = 512
"""Average rate below which a body counts as dripping, after the grace."""
MAX_MESSAGE = 64 << 20
"""Of a websocket; an agent reports its whole state in one."""
MAX_STRANGERS_MESSAGE = 1 << 20
"""The same without a token and without the cookie of a task's visitor: nobody knows yet who sends it."""
SWEEP_SECONDS = 1.0
RESERVED_DESCRIPTORS = 256
"""Descriptors that are not for connections: database, logs, contexts, downloads."""
MAX_DESCRIPTORS = 1 << 20


class Protocol(HttpToolsProtocol):
    """Counts the bytes of the request body that is being received, and bounds messages of strangers."""

    body_bytes = 0

    def handle_websocket_upgrade(self) -> None:
        if not any(_has_credentials(name, value) for name, value in self.scope["headers"]):
            self.config = copy.copy(self.config)
            self.config.ws_max_size = MAX_STRANGERS_MESSAGE
        super().handle_websocket_upgrade()

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        super().on_body(body)

    @property
    def is_waiting_for_head(self) -> bool:
        """True if no request is in progress: none was sent, or its head is incomplete."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_receiving(self) -> bool:
        """True if a body is incomplete and the application is ready to read more of it."""
        return self.cycle is not None and self.cycle.more_body and not self.flow.read_paused


def _has_credentials(name: bytes, value: bytes) -> bool:
    return name == b"authorization" or (name == b"cookie" and VISIT.encode() in value)


@dataclass
class _Observed:
    """State of a connection when a sweep first saw its present condition."""

    is_waiting: bool
    cycle: object
    since: float
    body_bytes: int


class Sweeper:
    """Ends idle and dripping connections, and the oldest idle ones when there are too many.

    It looks at all connections once per ``SWEEP_SECONDS``; requests themselves pay nothing for it. Connections with a
    complete request, such as long polls and streams, are left alone.
    """

    def __init__(self, *, max_connections: int, header_seconds: float = HEADER_SECONDS) -> None:
        self._max_connections = max_connections
        self._header_seconds = header_seconds
        self.observed: dict[Protocol, _Observed] = {}
        """What the last sweep saw of each open connection."""

    def sweep(self, connections: set[Protocol], now: float) -> int:
        """Returns how many connections were ended. ``now``: seconds of a monotonic clock."""
        ended = 0
        idle: list[tuple[float, Protocol]] = []
        observed: dict[Protocol, _Observed] = {}
        for connection in list(connections):
            seen = self._observe(connection, now)
            observed[connection] = seen
            if seen.is_waiting and now - seen.since >= self._header_seconds:
                ended += _end(connection)
            elif seen.is_waiting:
                idle.append((seen.since, connection))
            elif connection.is_receiving and _is_dripping(connection, seen, now):
                ended += _end(connection)
        surplus = len(connections) - ended - self._max_connections
        if surplus > 0:
            for _, connection in sorted(idle, key=lambda each: each[0])[:surplus]:
                ended += _end(connection)
        self.observed = observed
        if ended:
            logger.info("closed %d connections that sent no request in time", ended)
        return ended

    def _observe(self, connection: Protocol, now: float) -> _Observed:
        before = self.observed.get(connection)
        is_waiting, cycle = connection.is_waiting_for_head, connection.cycle
        if before is not None and before.is_waiting == is_waiting and before.cycle is cycle:
            return before
        return _Observed(is_waiting, cycle, now, connection.body_bytes)


def _is_dripping(connection: Protocol, seen: _Observed, now: float) -> bool:
    seconds = now - seen.since
    rate = (connection.body_bytes - seen.body_bytes) / max(seconds, 1e-9)
    return seconds >= BODY_GRACE_SECONDS and rate < MIN_BODY_BYTES_PER_SECOND


def _end(connection: Protocol) -> int:
    if connection.transport is None or connection.transport.is_closing():
        return 0
    connection.transport.abort()
    return 1


def raise_descriptor_limit() -> int:
    """Raises the soft limit of open descriptors to the hard limit. Returns how many connections fit."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(64, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_DESCRIPTORS)


def config_of(app: ASGIApp, *, tls_cert: Path | None = None, tls_key: Path | None = None) -> uvicorn.Config:
    """Returns the configuration that the master serves with; with a certificate and its key, by TLS."""
    return uvicorn.Config(
        app,
        http=Protocol,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
        ws_ping_interval=None,
        ws_max_size=MAX_MESSAGE,
        server_header=False,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )


class Server(uvicorn.Server):
    """Sweeps connections while it serves, and wakes polls and streams before it waits for them at the end."""

    def __init__(self, config: uvicorn.Config, notifications: Notifications, sweeper: Sweeper) -> None:
        super().__init__(config)
        self._notifications = notifications
        self.sweeper = sweeper
        self._sweeping: asyncio.Task[None] | None = None
        self.announcement = ""
        """Printed when it serves."""
        self.on_ready: Callable[[], None] = lambda: None
        self.on_shutdown: Callable[[], Awaitable[None]] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._sweeping = asyncio.create_task(self._sweep())
        self.on_ready()
        if self.started and self.announcement:
            print(self.announcement, flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._notifications.close()
        if self.on_shutdown is not None:
            await self.on_shutdown()
        await super().shutdown(sockets)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            connections = {each for each in self.server_state.connections if isinstance(each, Protocol)}
            self.sweeper.sweep(connections, loop.time())
