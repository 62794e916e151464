"""The network of HTTP connections to ports of tasks: each is a stream into the task."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpcore

from determined_master.auth.principal import Principal
from determined_master.db.session import Database
from determined_master.proxy.task_port import TaskPort
from determined_master.streams import target
from determined_master.streams.broker import StreamBroker
from determined_master.streams.task_connection import ConnectionFailed, TaskConnection
from determined_master.users.authorization import Authorization

MAX_CONNECTIONS = 32
"""Open connections to a port of a task for the pages of one user; further requests wait for one."""
MAX_IDLE_CONNECTIONS = 8
IDLE_SECONDS = 10.0
UNUSED_SECONDS = 60.0
"""Time after which a pool without a request is closed."""


class TaskNetwork:
    """Opens connections to tasks for their visitors."""

    def __init__(self, database: Database, authorization: Authorization, broker: StreamBroker) -> None:
        self._database, self._authorization, self._broker = database, authorization, broker
        self._pools: dict[tuple[TaskPort, int], httpcore.AsyncConnectionPool] = {}
        self._used_at: dict[tuple[TaskPort, int], float] = {}
        """In seconds of the event loop."""

    async def connect(self, service: TaskPort, user: Principal) -> TaskConnection:
        """Raises NotFound, Forbidden and Conflict for a task that does not run, TooManyRequests and NobodyCame."""
        async with self._database.read() as session:
            container = await target.find(session, self._authorization, user, service.task_id, 0)
        return await TaskConnection.open(
            self._broker, container, user.username, is_signed_in=_is_checked_elsewhere, port=service.port
        )

    def pool(self, service: TaskPort, user: Principal) -> httpcore.AsyncConnectionPool:
        """Returns the HTTP connections to one port for one user, who was checked."""
        key = service, user.user_id
        if key not in self._pools:
            self._pools[key] = httpcore.AsyncConnectionPool(
                ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # unused; the default one reads every authority
                max_connections=MAX_CONNECTIONS,
                max_keepalive_connections=MAX_IDLE_CONNECTIONS,
                keepalive_expiry=IDLE_SECONDS,
                network_backend=_Backend(lambda: self.connect(service, user)),
            )
        self._used_at[key] = asyncio.get_running_loop().time()
        return self._pools[key]

    async def close_idle(self) -> None:
        """Closes the pools in which nothing has happened for a while."""
        before = asyncio.get_running_loop().time() - UNUSED_SECONDS
        for key, pool in list(self._pools.items()):
            if self._used_at[key] < before and all(
                connection.is_idle() or connection.is_closed() for connection in pool.connections
            ):
                del self._pools[key], self._used_at[key]
                await pool.aclose()

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()


async def _is_checked_elsewhere() -> bool:
    """A visit is checked for all its connections at once."""
    return True


class _Backend(httpcore.AsyncNetworkBackend):
    """Connects to the task, whatever the host of the request is named."""

    def __init__(self, connect: Callable[[], Awaitable[TaskConnection]]) -> None:
        self._connect = connect

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return TaskStream(await self._connect())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class TaskStream(httpcore.AsyncNetworkStream):
    """A connection that reads one piece ahead: so an idle one that the task has closed is not used again."""

    def __init__(self, connection: TaskConnection) -> None:
        self._connection = connection
        self._rest = b""
        self._ahead = asyncio.create_task(connection.read())

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._rest:
            self._rest = await asyncio.shield(self._ahead)
            if self._rest:
                self._ahead = asyncio.create_task(self._connection.read())
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            await self._connection.write(buffer)
        except ConnectionFailed as problem:
            # The task may have answered before: what it said is read then, or why it is gone.
            raise httpcore.WriteError(problem.message) from problem

    async def aclose(self) -> None:
        self._ahead.cancel()
        await asyncio.gather(self._ahead, return_exceptions=True)
        await self._connection.close()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # as httpcore declares it
        return self._ahead.done() if info == "is_readable" else None
