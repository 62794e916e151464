"""Raw bytes of tasks in binary messages of a websocket: SSH of shells, and published TCP ports."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.responses import JSONResponse
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from determined.errors import ApiError, Forbidden, NotFound, Unauthenticated
from determined.link.messages import SshAccess
from determined.states import TaskKind
from determined_master.auth.authentication import Authenticator, bearer, lasts
from determined_master.auth.principal import Principal
from determined_master.auth.secrets import Secrets
from determined_master.clock import Clock
from determined_master.db.models import TaskRow
from determined_master.db.session import Database, ReadSession
from determined_master.notifications import SESSIONS, Notifications
from determined_master.proxy import declared_ports, task_queries
from determined_master.proxy.handshakes import Handshake, Handshakes
from determined_master.proxy.service_name import ServiceName
from determined_master.ssh import shell_keys
from determined_master.streams import target
from determined_master.streams.broker import StreamBroker
from determined_master.streams.relay import GOING_AWAY, close
from determined_master.streams.task_connection import ConnectionFailed, TaskConnection
from determined_master.tasks import repository as tasks
from determined_master.users import repository as users
from determined_master.users.authorization import Authorization

SIGN_IN_SECONDS = 15.0
SIGNED_OUT = 4401
UNSUPPORTED = 1003
"""Close code for messages of text."""
MAX_REASON_BYTES = 120
MAX_SENT_BYTES = 32 << 10
"""Of one message to a client. The official client waits for ever for the end of one with 64 KiB."""


@dataclass(frozen=True)
class TunnelEndpoint:
    """The endpoint of tunnels. ``/proxy/SHELL/`` carries SSH and needs no sign-in, since its client cannot show one: it
    is the agent that lets only the shell's own key in. ``/proxy/TASK:PORT/`` needs a token in ``Authorization``; a
    cookie counts for nothing, so that no page of another origin can use it."""

    broker: StreamBroker
    database: Database
    authenticator: Authenticator
    authorization: Authorization
    secrets: Secrets
    notifications: Notifications
    clock: Clock
    handshakes: Handshakes = field(default_factory=Handshakes)

    async def takes(self, socket: WebSocket, service: ServiceName) -> bool:
        """Returns True for a shell and for a port that is published for TCP, whose websockets are no page's, and for
        everybody without a token. Raises Unauthenticated for an invalid one, before anything is read of the task."""
        authorization = socket.headers.get("authorization")
        if bearer(authorization) is None:
            return True
        await self.authenticator.principal({"authorization": authorization or ""}, {})
        async with self.database.read() as session:
            task = await tasks.find(session, service.task_id)
            if task is None:
                return False
            if service.port is None:
                return task.kind is TaskKind.SHELL
            return await self._is_published(session, task, service.port)

    async def serve(self, socket: WebSocket, service: ServiceName) -> None:
        """One tunnel, until one of its sides ends."""
        try:
            if service.port is None:
                await self._serve_shell(socket, service.task_id)
            else:
                await self._serve_port(socket, service.task_id, service.port)
        except ApiError as error:
            if socket.application_state is not WebSocketState.CONNECTING:
                await close(socket, GOING_AWAY, _short(error.message))
                return
            await socket.send_denial_response(JSONResponse({"message": error.message}, status_code=error.status))

    async def _serve_shell(self, socket: WebSocket, task_id: str) -> None:
        address = socket.client.host if socket.client else ""
        replaced = asyncio.Event()
        with self.handshakes.begin(task_id, address, self.clock.now, replaced.set) as handshake:
            async with self.database.read() as session:
                task = await tasks.find(session, task_id)
                if task is None or task.kind is not TaskKind.SHELL:
                    raise NotFound(f"there is no shell {task_id}")
                owner_id = task.user_id
                if not (await users.get(session, owner_id)).active:
                    raise Forbidden("the owner of this shell is not active")
                container = await target.container(session, task_id, rank=0)
            access = SshAccess(
                host_key=shell_keys.host_key(self.secrets.ssh_secret, task_id).private_openssh,
                public_keys=[shell_keys.user_key(self.secrets.ssh_secret, task_id).public_openssh],
            )

            async def is_active() -> bool:
                async with self.database.read() as session:
                    return (await users.get(session, owner_id)).active

            connection = await TaskConnection.open(
                # Not the owner's name, whose own streams must not wait for strangers.
                self.broker,
                container,
                f"ssh {task_id}",
                is_signed_in=is_active,
                ssh=access,
            )
            admission = asyncio.create_task(self._admission(handshake, connection, replaced))
            try:
                await self._join(socket, connection, is_active, admission)
            finally:
                admission.cancel()

    async def _serve_port(self, socket: WebSocket, task_id: str, port: int) -> None:
        user = await self._user(socket)
        async with self.database.read() as session:
            task = await tasks.get(session, task_id)
            await self.authorization.check_enter(session, user, task.user_id, f"task {task_id}")
            if not await self._is_published(session, task, port):
                raise NotFound(
                    f"task {task_id} does not publish port {port} for TCP: publish it with environment.proxy_ports: "
                    f"[{{proxy_port: {port}, proxy_tcp: true}}], or reach it with `det task port-forward`"
                )
            container = await target.container(session, task_id, rank=0)

        async def is_signed_in() -> bool:
            return (await self._user(socket)).user_id == user.user_id

        connection = await TaskConnection.open(
            self.broker, container, user.username, is_signed_in=is_signed_in, port=port
        )
        await self._join(socket, connection, is_signed_in, None)

    async def _is_published(self, session: ReadSession, task: TaskRow, port: int) -> bool:
        ports = declared_ports.declared(await task_queries.config_of(session, task))
        return any(each.port == port and not each.is_page for each in ports)

    async def _user(self, socket: WebSocket) -> Principal:
        """Returns the user whose token is in the headers. Raises Unauthenticated, and Forbidden for a task."""
        authorization = socket.headers.get("authorization")
        if not bearer(authorization):
            raise Unauthenticated("a tunnel needs the header Authorization: Bearer TOKEN")
        principal = await self.authenticator.principal({"authorization": authorization or ""}, {})
        if principal.is_task:
            raise Forbidden("a task token opens no tunnel; this requires a user's login")
        return principal

    async def _admission(self, handshake: Handshake, connection: TaskConnection, replaced: asyncio.Event) -> None:
        """Returns once a newer handshake has taken the place of this one; never if its client was let in."""
        taking_place = asyncio.create_task(replaced.wait())
        admitted = asyncio.create_task(connection.admitted.wait())
        try:
            await asyncio.wait({taking_place, admitted}, return_when=asyncio.FIRST_COMPLETED)
            if admitted.done():
                self.handshakes.admit(handshake)
                await asyncio.Event().wait()
        finally:
            taking_place.cancel()
            admitted.cancel()

    async def _join(
        self,
        socket: WebSocket,
        connection: TaskConnection,
        is_signed_in: Callable[[], Awaitable[bool]],
        ending: "asyncio.Task[None] | None",
    ) -> None:
        """Passes bytes on until one side, the sign-in or the task ``ending`` ends. Closes both sides."""
        running: set[asyncio.Task[tuple[int, str]]] = set()
        try:
            await socket.accept()
            running = {
                asyncio.create_task(each)
                for each in (
                    _to_task(socket, connection),
                    _from_task(socket, connection),
                    self._sign_in_ended(is_signed_in),
                )
            }
            await asyncio.wait({*running, *([ending] if ending else [])}, return_when=asyncio.FIRST_COMPLETED)
            results = [task.result() for task in running if task.done()]
            code, reason = results[0] if results else (GOING_AWAY, "too many SSH connections")
            await close(socket, code, _short(reason))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await connection.close()

    async def _sign_in_ended(self, is_signed_in: Callable[[], Awaitable[bool]]) -> tuple[int, str]:
        async with self.notifications.subscribe(SESSIONS) as listener:
            while not self.notifications.closing:
                await listener.wait(SIGN_IN_SECONDS)
                if not await lasts(is_signed_in()):
                    return SIGNED_OUT, "you are no longer signed in"
        return GOING_AWAY, "the master ends"


async def _to_task(socket: WebSocket, connection: TaskConnection) -> tuple[int, str]:
    """Passes messages of the client on. Returns code and reason with which it is to be closed."""
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return 1000, ""  # normal
            data = message.get("bytes")
            if data is None:
                return UNSUPPORTED, "a tunnel takes binary messages only"
            await connection.write(data)
    except ConnectionFailed as problem:
        return GOING_AWAY, problem.message


async def _from_task(socket: WebSocket, connection: TaskConnection) -> tuple[int, str]:
    """Passes bytes of the task on, each only as fast as the client takes them."""
    try:
        while data := await connection.read():
            for start in range(0, len(data), MAX_SENT_BYTES):
                await socket.send_bytes(data[start : start + MAX_SENT_BYTES])
    except ConnectionFailed as problem:
        return GOING_AWAY, problem.message
    except (WebSocketDisconnect, RuntimeError):
        pass
    return 1000, ""  # normal


def _short(reason: str) -> str:
    """Returns as much of a text as a close message holds."""
    return reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
