"""The websocket of an agent: after the handshake it reports its state and receives its desired state."""

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from determined.config.validation_words import in_words
from determined.link.isolation import Isolation
from determined.link.messages import (
    AGENT_MESSAGE,
    PROTOCOL,
    DesiredContainer,
    DesiredState,
    Hello,
    Refuse,
    ReportedState,
    Welcome,
)
from determined_master import notifications
from determined_master.agents.registry import Link, Registry
from determined_master.agents.service import Agents
from determined_master.allocations.desired_state import desired_containers
from determined_master.api.agent_output import lines_of
from determined_master.auth.authentication import Authenticator, bearer
from determined_master.auth.secrets import Secrets
from determined_master.cluster.identity import Identity
from determined_master.db.session import Database
from determined_master.errors import StorageUnavailable
from determined_master.notifications import Notifications
from determined_master.providers import repository as instances
from determined_master.settings.pool_settings import unknown
from determined_master.settings.settings import Settings
from determined_master.streams.relay import GOING_AWAY, close

logger = logging.getLogger(__name__)

PATH = "/agents"
ENDED_SECONDS = 0.05
"""After this time an agent is told to forget a container that has ended, or with what follows on its slots."""


@dataclass(frozen=True)
class AgentEndpoint:
    """The websocket endpoint of agents."""

    settings: Settings
    identity: Identity
    authenticator: Authenticator
    agents: Agents
    registry: Registry
    database: Database
    secrets: Secrets
    notifications: Notifications

    async def serve(self, socket: WebSocket) -> None:
        """One agent's connection, from its handshake to its end."""
        await socket.accept()
        try:
            hello = await self._hello(socket)
        except StorageUnavailable as error:
            await _refuse(socket, error.message, final=False)
            return
        if hello is None:
            return
        seen_at = (socket.scope.get("server") or ("",))[0]
        link = Link(
            hello.agent_id,
            socket,
            hello.folder_id,
            hello.hostname,
            master_seen_at=seen_at,
            takes_streams=hello.takes_streams,
            takes_ssh=hello.takes_ssh,
        )
        former = self.registry.add(link)
        replacing = asyncio.create_task(_replace(former))
        try:
            try:
                await self.agents.welcome(hello)
            except StorageUnavailable as error:
                await _refuse(socket, error.message, final=False)
                return
            welcome = Welcome(
                master_epoch=self.identity.epoch,
                cluster_id=self.identity.cluster_id,
                heartbeat_seconds=self.settings.heartbeat_seconds,
                reconnect_seconds=self.settings.agent_reconnect_wait,
                takes_last_output=True,
                storage_folders=self.settings.storage_folders,
                data_folder=str(self.settings.data),
            )
            try:
                await socket.send_text(welcome.model_dump_json())
            except (RuntimeError, WebSocketDisconnect):
                return
            await self._talk(socket, link)
        finally:
            replacing.cancel()
            if self.registry.remove(link) and not self.notifications.closing:
                try:
                    await self.agents.disconnected(hello.agent_id)
                except StorageUnavailable:
                    if hello.agent_id not in self.registry.links:
                        self.registry.left.add(hello.agent_id)  # their loop stores it

    async def _hello(self, socket: WebSocket) -> Hello | None:
        if not self.authenticator.is_agent(bearer(socket.headers.get("authorization"))):
            await _refuse(socket, "the join token is not valid for this cluster", final=True)
            return None
        try:
            message = AGENT_MESSAGE.validate_json(await socket.receive_text())
        except ValidationError as error:
            problems = error.errors(include_url=False)
            said = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {in_words(each)}" for each in problems[:3])
            await _refuse(socket, f"invalid hello message: {said}", final=False)
            return None
        except (WebSocketDisconnect, KeyError) as error:
            await _refuse(socket, f"invalid hello message: {error}", final=False)
            return None
        if not isinstance(message, Hello):
            await _refuse(socket, "the first message must be a hello", final=False)
            return None
        if not PROTOCOL - 1 <= message.protocol <= PROTOCOL:
            await _refuse(
                socket,
                f"protocol {message.protocol} is not supported (this master supports {PROTOCOL - 1} and {PROTOCOL})",
                final=True,
            )
            return None
        # Epochs of another cluster do not apply: a new database next to an old agent folder starts at 1 again.
        if message.cluster_id in ("", self.identity.cluster_id) and message.master_epoch > self.identity.epoch:
            await _refuse(
                socket, f"this agent has already followed a newer master (epoch {message.master_epoch})", final=False
            )
            return None
        message = message.model_copy(update={"pool": self.settings.pool_for(message.pool, 1)})
        if message.pool not in self.settings.pools:
            await _refuse(socket, "; ".join(unknown(message.pool, self.settings.pools)), final=True)
            return None
        if (other := self.registry.namesake(message.agent_id, message.folder_id)) is not None:
            where = f" on {other.hostname}" if other.hostname else ""
            text = f"another agent{where} is connected as {message.agent_id}; give one of them another name with --id"
            # Not for good: a machine that replaces another may have its name, and the other is still timing out.
            await _refuse(socket, text, final=False)
            return None
        async with self.database.read() as session:
            ended = await instances.ended(session, message.agent_id)
        if ended is not None:
            await _refuse(socket, f"the provider of its pool has ended this agent{ended}", final=True)
            return None
        return message

    async def _talk(self, socket: WebSocket, link: Link) -> None:
        async with asyncio.TaskGroup() as group:
            wishing = group.create_task(self._send_wishes(socket, link))
            try:
                await self._receive_reports(socket, link)
            except (WebSocketDisconnect, TimeoutError, RuntimeError):
                pass
            finally:
                wishing.cancel()

    async def _receive_reports(self, socket: WebSocket, link: Link) -> None:
        """Closes a link that has been silent for three heartbeats."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as limit:
            while True:
                limit.reschedule(loop.time() + 3 * self.settings.heartbeat_seconds)
                text = await socket.receive_text()
                limit.reschedule(None)
                await self._report(link, text, loop.time())

    async def _report(self, link: Link, text: str, now: float) -> None:
        if link.is_repeated(text, now):
            return
        try:
            message = AGENT_MESSAGE.validate_json(text)
        except ValidationError:
            logger.warning("agent %s sent an invalid message", link.agent_id)
            return
        if isinstance(message, ReportedState):
            # The agent repeats its whole state with every heartbeat, so an unstored report is sent again.
            with contextlib.suppress(StorageUnavailable):
                await self._apply(link, message, text)

    async def _apply(self, link: Link, report: ReportedState, text: str) -> None:
        link.forget_report()
        changed = await self.agents.on_report(
            link.agent_id,
            report.containers,
            report.slots,
            report.sent_at,
            link.stored,
            [lines_of(link.agent_id, batch) for batch in report.last_output],
        )
        link.compared(text, asyncio.get_running_loop().time(), changed=changed)

    async def _send_wishes(self, socket: WebSocket, link: Link) -> None:
        items, known = Isolation(f"wishes of {link.agent_id}", logger), dict[str, DesiredContainer]()
        urgent, ended = notifications.agent(link.agent_id), notifications.ended_on(link.agent_id)
        subscribe = self.notifications.subscribe
        async with subscribe(urgent, ended) as changes, subscribe(urgent) as urgent_changes:
            while not self.notifications.closing:
                try:
                    containers = await desired_containers(
                        self.database,
                        self.secrets,
                        self.identity.cluster_id,
                        link.agent_id,
                        items,
                        known,
                        self.authenticator.task_keeper,
                    )
                except StorageUnavailable as error:
                    await asyncio.sleep(error.RETRY_SECONDS)
                    continue
                stored_output = link.stored.take_output()
                if containers != link.last_wish or link.sequence == 0 or stored_output:
                    link.sequence += 1
                    link.forget_report()
                    link.last_wish = containers
                    desired = DesiredState(
                        master_epoch=self.identity.epoch,
                        sequence=link.sequence,
                        containers=containers,
                        stored_output=stored_output,
                    )
                    try:
                        await socket.send_text(desired.model_dump_json())
                    except (RuntimeError, WebSocketDisconnect):
                        return
                if await changes.wait(30.0):
                    await urgent_changes.wait(ENDED_SECONDS)
                    changes.forget()
        await close(socket, GOING_AWAY, "the master is stopping")


async def _replace(former: Link | None) -> None:
    """Closes the connection that a newer one replaces. If its other side is gone, that takes until a timeout."""
    if former is not None:
        await close(former.socket, GOING_AWAY, "replaced by a newer connection")


async def _refuse(socket: WebSocket, reason: str, *, final: bool) -> None:
    logger.warning("rejected an agent: %s", reason)
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await socket.send_text(Refuse(reason=reason, final=final).model_dump_json())
        await socket.close()
