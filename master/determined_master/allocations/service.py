"""Life cycle of allocations: request, place, preempt, kill, end. It does not depend on trials."""

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from determined.config.experiment import MAX_PREEMPTION_TIMEOUT_SECONDS
from determined.errors import Conflict
from determined.states import AllocationState, ContainerState, ExitReason
from determined_master import notifications
from determined_master.agents import clock_skew
from determined_master.allocations import ports, repository, task_groups
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow
from determined_master.db.session import WriteSession, after_commit, notify
from determined_master.events import repository as events
from determined_master.events.state_machine import Event
from determined_master.logs import repository as logs
from determined_master.scheduling.plan import Placement
from determined_master.scheduling.view import TaskGroup

PEER_ENDED = "stopped because another process of the attempt ended"
"""Why the peers of a container that has ended are killed: that one gives the reason of the end."""


@dataclass(frozen=True)
class SlotRequest:
    """Request for one attempt of a task. ``spec`` is the container spec, see ``AllocationRow``."""

    task_id: str
    run_id: int
    groups: tuple[TaskGroup, ...]
    """All of them are placed, or none."""
    pool: str
    priority: int
    owner: str
    user_id: int
    submitted_at: datetime
    spec: dict[str, Any]
    preemption_timeout: int

    @property
    def allocation_id(self) -> str:
        return f"{self.task_id}.{self.run_id}"


class AttemptFollower(Protocol):
    """Does what follows from a completed attempt, in the transaction that ends it."""

    async def follow(self, session: WriteSession, ended: AllocationRow) -> bool:
        """Returns True if it did all that the loops of trials and tasks would do; False leaves it to them."""
        ...


class Allocations:
    """Every method uses the caller's session; slots are freed in the transaction that ends the allocation."""

    def __init__(self, clock: Clock, forget: Callable[[str], None], port_blocks: range = ports.ALL_BLOCKS) -> None:
        """``forget`` is called with the id of each ended allocation: its token becomes invalid. ``port_blocks``: those
        of which workers get one."""
        self._clock = clock
        self._forget = forget
        self._port_blocks = port_blocks

    async def request(self, session: WriteSession, requests: Sequence[SlotRequest]) -> None:
        """Adds a pending allocation for each request, in a constant number of statements per batch."""
        rows = [self._pending(each) for each in requests]
        await repository.add_many(session, rows)
        payloads = {row["id"]: {"slots": row["slots"], "pool": row["pool"]} for row in rows}
        await events.record_many(
            session, self._clock, actor=events.SYSTEM, kind="requested", target_type="allocation", payloads=payloads
        )
        notify(session, notifications.SCHEDULE)

    def _pending(self, request: SlotRequest) -> dict[str, Any]:
        """Returns the columns of a pending allocation."""
        constraints = request.groups[0].constraints
        return vars(request) | {
            "id": request.allocation_id,
            "slots": sum(group.count * group.slots for group in request.groups),
            "single_agent": constraints.single_agent,
            "agent_id": constraints.agent_id,
            "groups": [task_groups.to_json(group) for group in request.groups],
            "state": AllocationState.PENDING,
            "waiting": "waiting for the scheduler",
            "created_at": self._clock.now(),
        }

    async def withdraw(self, session: WriteSession, ids: Sequence[str], *, why: str) -> None:
        """Ends pending allocations, in a constant number of statements per batch. They count as settled: they never
        ran."""
        payload = {"reason": ExitReason.KILLED.value, "code": None, "message": why}
        ended = Event(kind="ended", payload=payload)
        values = {"exit_reason": ExitReason.KILLED, "message": why, "waiting": "", "settled": True}
        await repository.withdraw(session, self._clock, ids, ended, ended_at=self._clock.now(), **values)
        for allocation_id in ids:
            after_commit(session, partial(self._forget, allocation_id))
            notify(session, notifications.allocation(allocation_id))
        notify(session, notifications.TRIALS, notifications.SCHEDULE)

    async def place(self, session: WriteSession, placement: Placement) -> None:
        """Assigns slots. Raises Conflict if it is not pending or an agent has left, IntegrityError if a slot was
        assigned meanwhile."""
        agent_ids = {part.agent_id for part in placement.parts}
        row, agents = await repository.with_agents(session, placement.allocation_id, agent_ids)
        left = next((agent.agent_id for agent in agents if agent.is_lost), None)
        if left is not None:
            raise Conflict(f"agent {left} has left")
        now = self._clock.now()
        block = ports.choose(row.id, await repository.port_blocks(session), self._port_blocks)
        parts = [{"agent": part.agent_id, "slots": list(part.slots)} for part in placement.parts]
        placed = Event(kind="placed", payload={"parts": parts})
        await repository.move(
            session, self._clock, row, AllocationState.ASSIGNED, placed, placed_at=now, waiting="", port_block=block
        )
        containers = [
            {
                "id": str(uuid.uuid4()),
                "allocation_id": row.id,
                "agent_id": part.agent_id,
                "rank": rank,
                "slot_ids": list(part.slots),
                "state": ContainerState.ASSIGNED,
            }
            for rank, part in enumerate(placement.parts)
        ]
        await repository.hold(session, containers, now)
        for agent in agents:
            # The task's log names the agents whose clock differs from the master's.
            if agent.clock_skew:
                text = clock_skew.warning(agent.agent_id, agent.clock_skew)
                await logs.say(session, row.task_id, row.id, text, now, "WARNING")
        notify(session, notifications.allocation(row.id), *map(notifications.agent, agent_ids))

    async def mark_ready(self, session: WriteSession, allocation_id: str, task_id: str) -> None:
        """Marks it as ready: from now on it is preempted gracefully."""
        if await repository.set_ready(session, allocation_id, task_id, self._clock.now()):
            await self._record(session, allocation_id, "ready")
            notify(session, notifications.allocation(allocation_id))

    async def preempt(
        self,
        session: WriteSession,
        row: AllocationRow,
        *,
        why: str,
        leaves_for: str | None = None,
        ends_at: datetime | None = None,
    ) -> bool:
        """Preempts it if it is ready, kills it if it has only started, and ends it at once if it holds nothing.

        ``why`` is shown to the owner. ``leaves_for``: the allocation that gets its slots. ``ends_at``: when its agent
        ends, if it does. Returns True if preemption was requested by this call.
        """
        if leaves_for is not None:
            await repository.change(session, row, preempted_for=leaves_for)
        if row.state is AllocationState.PENDING:
            await self.end(session, row, ExitReason.KILLED, message=why)
        elif row.ready_at is None:
            await self.kill(session, row, why=why)
        elif row.preempt_requested_at is None and row.state.is_live:
            await repository.change(session, row, preempt_requested_at=self._clock.now(), message=why)
            await self._record(session, row.id, "preemption_requested")
            await self._announce_deadline(session, row, why, ends_at)
            notify(session, notifications.allocation(row.id), notifications.ALLOCATIONS)
            return True
        return False

    async def _announce_deadline(
        self, session: WriteSession, row: AllocationRow, why: str, ends_at: datetime | None
    ) -> None:
        """Writes into the log of its task when it will be killed if it does not leave."""
        # Rows of earlier versions may hold any number.
        seconds = min(max(row.preemption_timeout, 0), MAX_PREEMPTION_TIMEOUT_SECONDS)
        now = self._clock.now()
        at, limit = now + timedelta(seconds=seconds), f"preemption_timeout: {seconds} s"
        if ends_at is not None and ends_at < at:
            at, limit = ends_at, "its agent ends then"
        text = (
            f"preemption was requested ({why}): the attempt should save a checkpoint and exit; it is killed if it "
            f"is still running at {at:%Y-%m-%d %H:%M:%S} UTC ({limit})"
        )
        await logs.say(session, row.task_id, row.id, text, now, "INFO")

    async def kill(self, session: WriteSession, row: AllocationRow, *, why: str, agent_disabled: bool = False) -> None:
        """Kills it: it ends without a checkpoint. ``why`` is shown to the owner."""
        if row.state is AllocationState.PENDING:
            await self.end(session, row, ExitReason.KILLED, message=why)
        elif row.state.is_live and row.kill_requested_at is None:
            asked = Event(kind="kill_requested", payload={"message": why})
            values = {"kill_requested_at": self._clock.now(), "message": why, "agent_disabled": agent_disabled}
            await repository.move(session, self._clock, row, AllocationState.TERMINATING, asked, **values)
            agent_ids = await self._agents_of(session, row)
            notify(session, *map(notifications.agent, agent_ids))
        elif row.state.is_live and row.message == PEER_ENDED:
            await repository.change(session, row, message=why)

    async def acknowledge_preemption(self, session: WriteSession, row: AllocationRow) -> None:
        if row.preempt_acked_at is None:
            await repository.change(session, row, preempt_acked_at=self._clock.now())
            await self._record(session, row.id, "preemption_acknowledged")

    async def end(
        self,
        session: WriteSession,
        row: AllocationRow,
        reason: ExitReason,
        *,
        code: int | None = None,
        message: str = "",
        agent_ids: Collection[str] | None = None,
        follower: AttemptFollower | None = None,
    ) -> None:
        """Ends it and frees its slots in one transaction, and notifies the loop of trials or of tasks.
        ``agent_ids``: the agents of its containers, looked up if None. ``follower`` is called if it has completed."""
        now = self._clock.now()
        asked = follower if reason is ExitReason.COMPLETED else None
        ended = Event(kind="ended", payload={"reason": reason.value, "code": code, "message": message[:2000]})
        moved = await repository.move(
            session,
            self._clock,
            row,
            AllocationState.TERMINATED,
            ended,
            ended_at=now,
            exit_reason=reason,
            exit_code=code,
            message=message,
            waiting="",
            settled=asked is not None,
        )
        if not moved:
            return
        await repository.release_slots(session, row.id, now)
        after_commit(session, partial(self._forget, row.id))
        is_settled = asked is not None and await asked.follow(session, row)
        if asked is not None and not is_settled:
            await repository.change(session, row, settled=False)
        if not is_settled:
            notify(session, notifications.ATTEMPTS)
        notify(
            session,
            notifications.SCHEDULE,
            notifications.allocation(row.id),
            notifications.logs(row.task_id),
        )
        if agent_ids is None:
            agent_ids = await self._agents_of(session, row)
        notify(session, *map(notifications.ended_on, agent_ids))

    async def _agents_of(self, session: WriteSession, row: AllocationRow) -> set[str]:
        return {container.agent_id for container in await repository.containers_of(session, row.id)}

    async def _record(
        self, session: WriteSession, allocation_id: str, kind: str, payload: dict[str, Any] | None = None
    ) -> None:
        await events.record(
            session,
            self._clock,
            actor=events.SYSTEM,
            kind=kind,
            target_type="allocation",
            target_id=allocation_id,
            payload=payload,
        )
