"""SQL for allocations, their containers and the slots that they hold."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    and_,
    bindparam,
    func,
    or_,
    select,
    type_coerce,
    update,
)

from determined.errors import NotFound
from determined.states import AllocationState, ContainerState, ExitReason, TaskKind
from determined_master import notifications
from determined_master.allocations.states import ALLOWED, CONTAINER_ALLOWED
from determined_master.clock import Clock
from determined_master.db.models import AgentRow, AllocationRow, ContainerRow, SlotHoldRow, TaskRow
from determined_master.db.models.base import table_of, to_micros
from determined_master.db.queue_changes import SCHEDULER_COLUMNS
from determined_master.db.session import ReadSession, WriteSession, note, notify
from determined_master.db.statements.batches import batched
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import change_row, insert_rows
from determined_master.events.state_machine import Event, StateMachine

MAX_IDS_A_STATEMENT = 10_000
LIVE = [s for s in AllocationState if s.is_live]
PLACED = [s for s in LIVE if s is not AllocationState.PENDING]
"""Very many may be pending."""


ALLOCATIONS = StateMachine("allocation", AllocationRow, AllocationRow.id, ALLOWED)
CONTAINERS = StateMachine(
    "container",
    ContainerRow,
    ContainerRow.id,
    CONTAINER_ALLOWED,
    is_recorded=False,  # the allocation's events record this
)


async def find(session: ReadSession, allocation_id: str) -> AllocationRow | None:
    return await session.get(AllocationRow, allocation_id)


async def get(session: ReadSession, allocation_id: str) -> AllocationRow:
    row = await find(session, allocation_id)
    if row is None:
        raise NotFound(f"allocation '{allocation_id}' not found")
    return row


class PlacementAgent(NamedTuple):
    """An agent on which an allocation is to be placed. ``is_lost``: its reconnect window has expired, or its provider
    ends it."""

    agent_id: str
    is_lost: bool
    clock_skew: int


async def with_agents(
    session: ReadSession, allocation_id: str, agent_ids: Collection[str]
) -> tuple[AllocationRow, list[PlacementAgent]]:
    """Returns an allocation and the agents, by id. Raises NotFound."""
    rows = await _WITH_AGENTS.rows(session, allocation_id=allocation_id, agent_ids=list(agent_ids))
    if not rows:
        raise NotFound(f"allocation '{allocation_id}' not found")
    return rows[0][0], [PlacementAgent(*row[1:]) for row in rows if row[1] is not None]


_WITH_AGENTS = Prepared(
    select(AllocationRow, AgentRow.id, AgentRow.lost, AgentRow.clock_skew)
    .outerjoin(AgentRow, AgentRow.id.in_(bindparam("agent_ids", expanding=True)))
    .where(AllocationRow.id == bindparam("allocation_id"))
    .order_by(AgentRow.id)
)


async def pool_of(session: ReadSession, allocation_id: str) -> str:
    """Returns the pool of an allocation."""
    return (await session.scalars(select(AllocationRow.pool).where(AllocationRow.id == allocation_id))).one()


async def add_many(session: WriteSession, rows: Sequence[Mapping[str, Any]]) -> None:
    """Adds allocations, given by their columns."""
    await insert_rows(session, _ROWS, rows)
    note(session, "allocations", [row["id"] for row in rows])
    for row in rows:
        _tell(session, row["task_id"])


async def move(
    session: WriteSession,
    clock: Clock,
    row: AllocationRow,
    to: AllocationState,
    event: Event | None = None,
    **values: object,
) -> bool:
    """Changes the state of an allocation, see ``StateMachine.move``."""
    note(session, "allocations", [row.id])
    if not await ALLOCATIONS.move(session, clock, row, to, event, **values):
        return False
    _tell(session, row.task_id)
    return True


async def withdraw(session: WriteSession, clock: Clock, ids: Sequence[str], event: Event, **values: object) -> None:
    """Ends pending allocations, see ``StateMachine.move_many``."""
    await ALLOCATIONS.move_many(
        session, clock, ids, AllocationState.PENDING, AllocationState.TERMINATED, event, **values
    )
    note(session, "allocations", ids)
    notify(session, notifications.CLUSTER, *(notifications.task(each.rpartition(".")[0]) for each in ids))


async def move_container(
    session: WriteSession, clock: Clock, row: ContainerRow, to: ContainerState, **values: object
) -> bool:
    """Changes the state of a container, see ``StateMachine.move``."""
    note(session, "agents", [row.agent_id])
    return await CONTAINERS.move(session, clock, row, to, **values)


async def live_of_task(session: ReadSession, task_id: str) -> AllocationRow | None:
    return await _LIVE_OF_TASK.first(session, task_id=task_id)


_LIVE_OF_TASK = Prepared(
    select(AllocationRow).where(AllocationRow.task_id == bindparam("task_id"), AllocationRow.state.in_(LIVE))
)


async def live_of_tasks(session: ReadSession, task_ids: Collection[str]) -> Sequence[AllocationRow]:
    query = select(AllocationRow).where(AllocationRow.task_id.in_(task_ids), AllocationRow.state.in_(LIVE))
    return (await session.scalars(query)).all()


async def of_task(session: ReadSession, task_id: str) -> Sequence[AllocationRow]:
    query = select(AllocationRow).where(AllocationRow.task_id == task_id).order_by(AllocationRow.run_id)
    return (await session.scalars(query)).all()


async def of_tasks(session: ReadSession, task_ids: Collection[str]) -> Sequence[AllocationRow]:
    query = select(AllocationRow).where(AllocationRow.task_id.in_(task_ids)).order_by(AllocationRow.run_id)
    return (await session.scalars(query)).all()


async def newest_failures(session: ReadSession, task_ids: Collection[str]) -> dict[str, AllocationRow]:
    """Returns by task the newest of its allocations that failed; tasks without any are absent."""
    failures: dict[str, AllocationRow] = {}
    for batch in batched(list(task_ids), MAX_IDS_A_STATEMENT):
        query = (
            select(AllocationRow)
            .where(AllocationRow.task_id.in_(batch), AllocationRow.failure.is_not(None))
            .order_by(AllocationRow.run_id)
        )
        failures.update((row.task_id, row) for row in await session.scalars(query))
    return failures


async def live(session: ReadSession) -> Sequence[AllocationRow]:
    return (await session.scalars(select(AllocationRow).where(AllocationRow.state.in_(LIVE)))).all()


async def preempting(session: ReadSession) -> Sequence[AllocationRow]:
    """Returns the live allocations that were asked to leave and are not being killed."""
    query = select(AllocationRow).where(
        AllocationRow.state.in_(LIVE),
        AllocationRow.preempt_requested_at.is_not(None),
        AllocationRow.kill_requested_at.is_(None),
    )
    return (await session.scalars(query)).all()


def _unsettled(*, of_trials: bool) -> Prepared[str]:
    """Returns the ended allocations of trials, or of all other tasks, that are not settled, oldest first."""
    of_kind = TaskRow.kind == TaskKind.TRIAL if of_trials else TaskRow.kind != TaskKind.TRIAL
    query = (
        select(AllocationRow.id)
        .join(TaskRow, TaskRow.id == AllocationRow.task_id)
        .where(AllocationRow.state == AllocationState.TERMINATED, AllocationRow.settled.is_(False), of_kind)
    )
    return Prepared(query.order_by(AllocationRow.ended_at))


_UNSETTLED = {of_trials: _unsettled(of_trials=of_trials) for of_trials in (False, True)}


async def unsettled(session: ReadSession, *, of_trials: bool) -> Sequence[str]:
    """Returns the ids of the ended allocations of trials, or of all other tasks, that are not settled, oldest first."""
    return await _UNSETTLED[of_trials].scalars(session)


async def containers_of(session: ReadSession, allocation_id: str) -> Sequence[ContainerRow]:
    return await _CONTAINERS_OF.scalars(session, allocation_id=allocation_id)


_CONTAINERS_OF = Prepared(
    select(ContainerRow).where(ContainerRow.allocation_id == bindparam("allocation_id")).order_by(ContainerRow.rank)
)


async def containers_of_tasks(session: ReadSession, task_ids: Collection[str]) -> Sequence[ContainerRow]:
    query = (
        select(ContainerRow)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(AllocationRow.task_id.in_(task_ids))
    )
    return (await session.scalars(query)).all()


async def containers_of_live(session: ReadSession) -> dict[str, list[ContainerRow]]:
    """Returns the containers of the live allocations, by allocation and in the order of their ranks."""
    query = (
        select(ContainerRow)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(AllocationRow.state.in_(LIVE))
        .order_by(ContainerRow.allocation_id, ContainerRow.rank)
    )
    found: dict[str, list[ContainerRow]] = {}
    for container in await session.scalars(query):
        found.setdefault(container.allocation_id, []).append(container)
    return found


async def attempt_of(session: ReadSession, container_id: str) -> tuple[AllocationRow, list[ContainerRow]] | None:
    """Returns the allocation of a container with all of its containers, in the order of their ranks."""
    rows = await _ATTEMPT.rows(session, container_id=container_id)
    return (rows[0][0], [container for _, container in rows]) if rows else None


_ATTEMPT = Prepared(
    select(AllocationRow, ContainerRow)
    .join(ContainerRow, ContainerRow.allocation_id == AllocationRow.id)
    .where(
        AllocationRow.id
        == select(ContainerRow.allocation_id).where(ContainerRow.id == bindparam("container_id")).scalar_subquery()
    )
    .order_by(ContainerRow.rank)
)


async def hold(session: WriteSession, containers: Sequence[dict[str, Any]], now: datetime) -> None:
    """Adds the containers and assigns their slots. Raises IntegrityError if one of them is taken."""
    note(session, "agents", [container["agent_id"] for container in containers])
    await insert_rows(session, table_of(ContainerRow), containers)
    holds = [
        {
            "allocation_id": container["allocation_id"],
            "container_id": container["id"],
            "agent_id": container["agent_id"],
            "slot_id": slot,
            "held_at": now,
        }
        for container in containers
        for slot in container["slot_ids"]
    ]
    await insert_rows(session, table_of(SlotHoldRow), holds)


async def held_slots(session: ReadSession) -> Sequence[tuple[str, int]]:
    """Returns agent and slot of each slot that an allocation holds."""
    return await _HELD.rows(session)


_HELD = Prepared(select(SlotHoldRow.agent_id, SlotHoldRow.slot_id).where(SlotHoldRow.released_at.is_(None)))


async def live_holds(session: ReadSession) -> Sequence[tuple[SlotHoldRow, ContainerRow]]:
    query = (
        select(SlotHoldRow, ContainerRow)
        .join(ContainerRow, ContainerRow.id == SlotHoldRow.container_id)
        .where(SlotHoldRow.released_at.is_(None))
    )
    return [(hold, container) for hold, container in (await session.execute(query)).all()]


async def live_without_spec(session: ReadSession, most: int | None = None) -> Sequence[AllocationRow]:
    """Returns the live allocations in scheduling order, without their specs, which are large."""
    query = select(AllocationRow).where(AllocationRow.state.in_(LIVE))
    query = query.order_by(AllocationRow.priority, AllocationRow.submitted_at, AllocationRow.id).limit(most)
    return (await session.scalars(query)).all()


class SlotAssignment(NamedTuple):
    """One assignment of a slot: its task and how the allocation ended."""

    agent_id: str
    slot_id: int
    held_at: datetime
    released_at: datetime | None
    task_id: str
    exit_reason: ExitReason | None


async def holds_between(session: ReadSession, start: datetime, end: datetime, most: int) -> list[SlotAssignment]:
    """Returns the assignments that overlap the period, newest first."""
    newest = (
        select(SlotHoldRow)
        .where(_touches(start, end))
        .order_by(SlotHoldRow.held_at.desc(), SlotHoldRow.id.desc())
        .limit(most)
        .subquery()
    )
    held = newest.c
    query = (
        select(held.agent_id, held.slot_id, held.held_at, held.released_at, AllocationRow.task_id)
        .add_columns(AllocationRow.exit_reason)
        .join(AllocationRow, AllocationRow.id == held.allocation_id)
        .order_by(held.held_at.desc(), held.id.desc())
    )
    return [SlotAssignment(*found) for found in (await session.execute(query)).all()]


async def held_spans(session: ReadSession, start: datetime, end: datetime, now: datetime) -> list[tuple[float, float]]:
    """Returns start and end of each assignment in seconds from ``start``; there may be very many."""
    zero = to_micros(start)
    since = (type_coerce(SlotHoldRow.held_at, BigInteger) - zero) / 1e6
    until = (func.coalesce(type_coerce(SlotHoldRow.released_at, BigInteger), to_micros(now)) - zero) / 1e6
    found = await session.execute(select(since, until).where(_touches(start, end)))
    return [(float(first), float(last)) for first, last in found.all()]


def _touches(start: datetime, end: datetime) -> ColumnElement[bool]:
    return and_(
        or_(SlotHoldRow.released_at.is_(None), SlotHoldRow.released_at > start),
        SlotHoldRow.held_at < end,
    )


_PORT_BLOCKS = Prepared(
    select(AllocationRow.port_block).where(AllocationRow.state.in_(PLACED), AllocationRow.port_block.is_not(None))
)


async def port_blocks(session: ReadSession) -> set[int]:
    """Returns the port blocks of every live allocation."""
    return {block for block in await _PORT_BLOCKS.scalars(session) if block is not None}


async def release_slots(session: WriteSession, allocation_id: str, now: datetime) -> list[str]:
    """Frees all slots of the allocation and returns the agents that held them."""
    agent_ids = await _RELEASE.scalars(session, of_allocation=allocation_id, now=now)
    note(session, "agents", agent_ids)
    return agent_ids


_HOLDS = table_of(SlotHoldRow)
_RELEASE: Prepared[str] = Prepared(
    update(_HOLDS)
    .where(_HOLDS.c.allocation_id == bindparam("of_allocation"), _HOLDS.c.released_at.is_(None))
    .values(released_at=bindparam("now"))
    .returning(_HOLDS.c.agent_id)
)


async def change_container(session: WriteSession, row: ContainerRow, **values: object) -> None:
    """Updates columns of a container other than its state."""
    await change_row(session, row, values)


async def change(session: WriteSession, row: AllocationRow, **values: object) -> None:
    """Updates columns of an allocation other than its state."""
    await change_row(session, row, values)
    if not SCHEDULER_COLUMNS["allocations"].columns.isdisjoint(values):
        note(session, "allocations", [row.id])
    if values.keys() != {"settled"}:
        _tell(session, row.task_id)


_ROWS = table_of(AllocationRow)
_SET_READY: Prepared[str] = Prepared(
    update(_ROWS)
    .where(_ROWS.c.id == bindparam("allocation"), _ROWS.c.ready_at.is_(None))
    .values(ready_at=bindparam("now"))
    .returning(_ROWS.c.id)
)


async def set_ready(session: WriteSession, allocation_id: str, task_id: str, now: datetime) -> bool:
    """Stores that an allocation of the task is ready. Returns False if it was already."""
    if not await _SET_READY.rows(session, allocation=allocation_id, now=now):
        return False
    _tell(session, task_id)
    return True


def _tell(session: WriteSession, task_id: str) -> None:
    """Notifies subscribers of the task's state, of the queue and of the slots."""
    notify(session, notifications.task(task_id), notifications.CLUSTER)
