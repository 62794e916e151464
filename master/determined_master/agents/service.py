"""Agent life cycle: register, report, disconnect, expire; enabling and disabling slots."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from determined.link.isolation import Isolation
from determined.link.messages import Hello, ReportedContainer, SlotStatus
from determined_master import notifications
from determined_master.agents import clock_skew, departure, repository
from determined_master.agents.departure import Departure
from determined_master.auth.principal import Principal
from determined_master.clock import Clock
from determined_master.db.models import AgentRow, AgentSlotRow
from determined_master.db.session import Database, ReadSession, WriteSession, after_commit, notify
from determined_master.db.statements.batches import batched
from determined_master.errors import StorageUnavailable
from determined_master.events import repository as events
from determined_master.logs.store import Lines

logger = logging.getLogger(__name__)

CONTAINERS_A_LOT = 25
"""Containers whose reports or ends one transaction stores: each takes several statements."""


@dataclass
class StoredReport:
    """What the database has of an agent's reports besides its containers; None until it was looked up."""

    clock_skew: int | None = None
    slots: Sequence[SlotStatus] | None = None
    containers: Mapping[str, ReportedContainer] | None = None
    """The containers of the last report. One that differs from it is stored without a look at the database."""
    output: dict[str, int] = field(default_factory=dict)
    """Offsets up to which output that came with the end of a container is stored, of which the agent was not told."""

    def take_output(self) -> dict[str, int]:
        """Returns ``output``, and empties it."""
        output, self.output = self.output, {}
        return output

    def holds(self, skew: int, slots: Sequence[SlotStatus]) -> bool:
        """Returns True if a report with these values changes nothing."""
        if self.clock_skew is None or self.slots is None:
            return False
        return not clock_skew.has_changed(self.clock_skew, skew) and list(self.slots) == list(slots)

    def differing(self, containers: Sequence[ReportedContainer]) -> list[ReportedContainer]:
        """Returns those that are not as in the last report; none if there was no last one."""
        if self.containers is None:
            return []
        return [each for each in containers if self.containers.get(each.container_id) != each]


class Containers(Protocol):
    """Callbacks about the containers of agents, implemented by the allocations layer. They use the caller's session, so
    that an agent and its containers are lost in one transaction."""

    async def news(
        self, session: ReadSession, agent_id: str, reports: Sequence[ReportedContainer]
    ) -> Sequence[ReportedContainer]:
        """Returns the reports that change anything."""
        ...

    async def on_report(
        self,
        session: WriteSession,
        agent_id: str,
        reports: Sequence[ReportedContainer],
        last_output: Sequence[Lines] = (),
        *,
        is_isolated: bool = True,
    ) -> Mapping[str, int]:
        """Applies reports. ``is_isolated``: one that cannot be applied holds up no other; a savepoint for each.

        ``last_output``: of containers that these reports end; ignored if ``is_isolated``. Returns the offset up to
        which the output of each of them is stored.
        """
        ...

    async def end_unknown(
        self, session: WriteSession, agent_id: str, known: Collection[str], most: int | None = None
    ) -> bool:
        """Ends containers that are not among those that the agent knows. Returns False if more than ``most`` are."""
        ...

    async def lose(self, session: WriteSession, agent_id: str, *, why: str, most: int | None = None) -> bool:
        """Declares the containers of the agent as ended. ``why`` is shown to the owners. Returns False if there may be
        more than ``most``."""
        ...

    async def kill(
        self, session: WriteSession, agent_id: str, slot_id: int | None = None, *, why: str, most: int | None = None
    ) -> bool:
        """Kills the containers on the agent, or on one slot of it, which are not being killed. ``why`` is shown to the
        owners. Returns False if there may be more than ``most``."""
        ...


class Agents:
    def __init__(self, database: Database, clock: Clock, containers: Containers) -> None:
        self._database = database
        self._clock = clock
        self._containers = containers
        self._items = Isolation("agents", logger)

    async def welcome(self, hello: Hello) -> None:
        """Registers an agent: stores its slots and applies the reported state of its containers, many in lots. An agent
        whose connection ends between them says hello again."""
        known = {each.container_id for each in hello.containers}
        async with self._database.write() as session:
            row = await repository.find(session, hello.agent_id)
            if row is None:
                row = AgentRow(id=hello.agent_id, registered_at=self._clock.now(), enabled=True, draining=False)
            row.pool, row.hostname, row.version = hello.pool, hello.hostname, hello.version
            row.container_runtime = hello.container_runtime
            row.clock_skew = clock_skew.skew_seconds(hello.sent_at, self._clock.now())
            if row.lost:
                row.registered_at = self._clock.now()
            row.disconnected_at, row.lost = None, False
            await repository.save(session, row)
            await repository.set_slots(session, hello.agent_id, hello.slots)
            is_done = await self._containers.end_unknown(session, hello.agent_id, known, CONTAINERS_A_LOT)
            await self._containers.on_report(session, hello.agent_id, hello.containers[:CONTAINERS_A_LOT])
            await self._record(session, hello.agent_id, "connected", events.SYSTEM)
            notify(session, notifications.SCHEDULE)
        while not is_done:
            async with self._database.write() as session:
                is_done = await self._containers.end_unknown(session, hello.agent_id, known, CONTAINERS_A_LOT)
        for some in batched(hello.containers[CONTAINERS_A_LOT:], CONTAINERS_A_LOT):
            async with self._database.write() as session:
                await self._containers.on_report(session, hello.agent_id, some)

    async def on_report(
        self,
        agent_id: str,
        containers: list[ReportedContainer],
        slots: Sequence[SlotStatus] = (),
        sent_at: float = 0.0,
        stored: StoredReport | None = None,
        last_output: Sequence[Lines] = (),
    ) -> bool:
        """Applies a report and returns True if it changed anything.

        ``slots``: those that are not free. ``sent_at``: time of the agent's clock, or 0. ``stored``: kept by the
        caller for the length of a connection; saves looking up what most reports repeat. ``last_output``: of
        containers that this report ends.
        """
        skew = clock_skew.skew_seconds(sent_at, self._clock.now())
        stored = stored or StoredReport()
        has_moved = False
        changed: list[SlotStatus] = []
        known = stored.clock_skew
        news: Sequence[ReportedContainer] = stored.differing(containers)
        stored.containers = {each.container_id: each for each in containers}
        if not news or not stored.holds(skew, slots):
            # A report that repeats the last one is compared with the database: storing that one may have failed.
            async with self._database.read() as session:
                news = await self._containers.news(session, agent_id, containers)
                if not stored.holds(skew, slots):
                    row = await repository.find(session, agent_id)
                    has_moved = bool(sent_at and row is not None and clock_skew.has_changed(row.clock_skew, skew))
                    changed = changed_statuses(await repository.slots(session, agent_id), slots)
                    known = skew if has_moved or row is None else row.clock_skew
        if not news and not changed and not has_moved:
            stored.clock_skew, stored.slots = known, slots
            return False
        *lots, news = list(batched(news, CONTAINERS_A_LOT)) or [news]
        for some in lots:
            store = partial(self._store, agent_id, some, None, None, stored, last_output)
            if not await self._stored_together(store):
                await store(is_isolated=True)
        store = partial(
            self._store, agent_id, news, slots if changed else None, skew if has_moved else None, stored, last_output
        )
        if len(news) == 1 and not changed and not has_moved:
            # The transaction isolates it.
            await self._items.run("container", news[0].container_id, partial(store, is_isolated=False))
        elif not await self._stored_together(store):
            await store(is_isolated=True)
        # After the commit: what was rolled back is looked up again.
        stored.clock_skew, stored.slots = known, slots
        return True

    async def _stored_together(self, store: Callable[..., Awaitable[None]]) -> bool:
        """Stores a report without savepoints, which cost as much as the changes. Returns False if a part of it cannot
        be applied."""
        try:
            await store(is_isolated=False)
        except StorageUnavailable:
            raise
        except Exception as error:
            logger.info("a report cannot be applied as a whole, so its parts are applied one by one: %s", error)
            return False
        return True

    async def _store(
        self,
        agent_id: str,
        news: Sequence[ReportedContainer],
        slots: Sequence[SlotStatus] | None,
        skew: int | None,
        stored: StoredReport,
        last_output: Sequence[Lines],
        *,
        is_isolated: bool,
    ) -> None:
        """Stores what a report changes; None: unchanged."""
        # An agent that connects again repeats what it has reported of containers that have not ended.
        has_ended = any(each.state.is_terminal for each in news)
        async with self._database.write(is_synced=has_ended) as session:
            if skew is not None:
                await repository.change(session, agent_id, clock_skew=skew)
            if news:
                output = await self._containers.on_report(session, agent_id, news, last_output, is_isolated=is_isolated)
                if output:
                    after_commit(session, partial(stored.output.update, output))
            if slots is not None:
                await self._change_statuses(session, agent_id, slots)

    async def _change_statuses(self, session: WriteSession, agent_id: str, slots: Sequence[SlotStatus]) -> None:
        changed = changed_statuses(await repository.slots(session, agent_id), slots)
        await repository.set_statuses(session, agent_id, changed)
        rows = [
            (f"slot_{new.id}_{new.status}", agent_id, {"reason": new.reason} if new.reason else {}) for new in changed
        ]
        await events.record_all(session, self._clock, actor=events.SYSTEM, target_type="agent", rows=rows)
        notify(session, notifications.SCHEDULE)

    async def disconnected(self, agent_id: str) -> None:
        """Starts the agent's reconnect window; nothing new is placed on it until it reconnects."""
        async with self._database.write() as session:
            await repository.change(session, agent_id, disconnected_at=self._clock.now())
            await self._record(session, agent_id, "disconnected", events.SYSTEM)
            notify(session, notifications.AGENTS, notifications.SCHEDULE)

    async def set_enabled(self, agent_id: str, *, enabled: bool, drain: bool, principal: Principal) -> AgentRow:
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            await repository.change(session, agent_id, enabled=enabled, draining=not enabled and drain)
            if not enabled and not drain:
                why = disabled_by(agent_id, principal.username)
                if not await self._containers.kill(session, agent_id, why=why, most=CONTAINERS_A_LOT):
                    notify(session, notifications.AGENTS)  # their loop goes on with the others
            await self._record(session, agent_id, "enabled" if enabled else "disabled", principal.username)
            notify(session, notifications.SCHEDULE)
            await session.refresh(row)
        return row

    async def set_slot_enabled(
        self, agent_id: str, slot_id: int, *, enabled: bool, drain: bool, principal: Principal
    ) -> None:
        async with self._database.write() as session:
            await repository.get(session, agent_id)
            await repository.get_slot(session, agent_id, slot_id)
            await repository.change_slot(session, agent_id, slot_id, enabled=enabled, draining=not enabled and drain)
            if not enabled and not drain:
                why = disabled_by(agent_id, principal.username, slot_id)
                await self._containers.kill(session, agent_id, slot_id, why=why)
            await self._record(
                session, agent_id, f"slot_{slot_id}_{'enabled' if enabled else 'disabled'}", principal.username
            )
            notify(session, notifications.SCHEDULE)

    async def set_departure(self, session: WriteSession, agent_id: str, known: Departure) -> None:
        """Stores what an agent runs in, and when and why it will end by itself; nothing if the agent is not there."""
        row = await repository.find(session, agent_id)
        if row is None or row.lost or not departure.differs(row, known):
            return
        if not departure.is_about(row.leaves_at, known.leaves_at):
            await self._record(session, agent_id, "departure_known", events.SYSTEM, departure.in_words(known))
        notify(session, notifications.DEPARTURES)
        values = {"origin": known.origin, "leaves_at": known.leaves_at, "leaves_why": known.why}
        await repository.change(session, agent_id, **values, has_time_limit=known.has_time_limit)

    async def set_leaving(self, session: WriteSession, agent_id: str, *, leaving: bool) -> None:
        """Closes an agent for new work because it ends soon, or opens it again because it does not."""
        await repository.change(session, agent_id, leaving=leaving)
        notify(session, notifications.SCHEDULE)

    async def retire(self, session: WriteSession, agent_id: str, *, why: str) -> None:
        """Takes an agent out of its pool for good because its provider ends it; nothing if it has not registered."""
        row = await repository.find(session, agent_id)
        if row is not None and not row.lost:
            await repository.change(session, agent_id, lost=True)
            text = f"agent {agent_id} was ended by its provider: {why}"
            if not await self._containers.lose(session, agent_id, why=text, most=CONTAINERS_A_LOT):
                notify(session, notifications.AGENTS)  # their loop goes on with the others
            notify(session, notifications.SCHEDULE)

    async def expire(self, agent_id: str) -> None:
        """Ends the containers of an agent in lots; it is lost with the last one. Nothing is placed on it meanwhile."""
        why = f"agent {agent_id} was lost: it did not reconnect in time"
        is_done = False
        while not is_done:
            async with self._database.write() as session:
                row = await repository.find(session, agent_id)
                if row is None or row.disconnected_at is None:
                    return
                is_done = await self._containers.lose(session, agent_id, why=why, most=CONTAINERS_A_LOT)
                if is_done:
                    await repository.change(session, agent_id, lost=True)
                    await self._record(session, agent_id, "lost", events.SYSTEM)
                notify(session, notifications.SCHEDULE)

    async def end_left_over(self, agent_id: str) -> None:
        """Ends the containers of an agent in lots, as long as it is not enabled again."""
        is_done = False
        while not is_done:
            async with self._database.write() as session:
                row = await repository.find(session, agent_id)
                if row is None:
                    return
                if row.lost:
                    why = f"agent {agent_id} was ended by its provider"
                    is_done = await self._containers.lose(session, agent_id, why=why, most=CONTAINERS_A_LOT)
                    notify(session, notifications.SCHEDULE)
                elif not row.enabled and not row.draining:
                    wanted = events.Selection(kind="disabled", target_type="agent", target_id=agent_id)
                    found = await events.page(session, wanted, before=None, most=1)
                    why = disabled_by(agent_id, found[0].actor if found else events.SYSTEM)
                    is_done = await self._containers.kill(session, agent_id, why=why, most=CONTAINERS_A_LOT)
                else:
                    return

    async def _record(self, session: WriteSession, agent_id: str, kind: str, actor: str, reason: str = "") -> None:
        payload = {"reason": reason} if reason else None
        await events.record(
            session, self._clock, actor=actor, kind=kind, target_type="agent", target_id=agent_id, payload=payload
        )


def disabled_by(agent_id: str, username: str, slot_id: int | None = None) -> str:
    """Returns the shown reason of an attempt that is killed because its agent or slot is disabled."""
    slot = "" if slot_id is None else f"slot {slot_id} of "
    return f"{slot}agent {agent_id} was disabled by {username}"


def changed_statuses(rows: Sequence[AgentSlotRow], reported: Sequence[SlotStatus]) -> list[SlotStatus]:
    """Returns the new statuses of the slots whose status or reason changed; slots that were not reported are free."""
    now = {status.id: status for status in reported}
    wanted = [now.get(row.slot_id) or SlotStatus(id=row.slot_id) for row in rows]
    return [
        new
        for row, new in zip(rows, wanted, strict=True)
        if (row.status, row.status_reason) != (new.status, new.reason)
    ]
