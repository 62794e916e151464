"""SQL for agents and their slots."""

from collections.abc import Collection, Sequence
from typing import Literal

from sqlalchemy import and_, bindparam, delete, func, or_, select, update

from determined.errors import NotFound
from determined.link.messages import SlotFacts, SlotStatus
from determined.states import AllocationState
from determined_master import notifications
from determined_master.db.models import AgentRow, AgentSlotRow, AllocationRow, ContainerRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession, note, notify
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import insert_rows

Order = Literal["id", "registered_at"]
"""The columns by which pages of agents can be sorted."""


async def find(session: ReadSession, agent_id: str) -> AgentRow | None:
    return await session.get(AgentRow, agent_id)


async def get(session: ReadSession, agent_id: str) -> AgentRow:
    row = await find(session, agent_id)
    if row is None or row.lost:
        raise NotFound(f"agent {agent_id!r} not found")
    return row


async def with_containers_to_end(session: ReadSession) -> list[str]:
    """Returns the agents with containers that were not asked to end, although the agent was disabled without a drain,
    or is lost."""
    on_it = (ContainerRow.agent_id == AgentRow.id, ContainerRow.is_live())
    of_it = select(ContainerRow.id).join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id).where(*on_it)
    unasked = of_it.where(AllocationRow.kill_requested_at.is_(None), AllocationRow.state != AllocationState.TERMINATED)
    is_disabled = and_(AgentRow.enabled.is_(False), AgentRow.draining.is_(False), unasked.exists())
    query = select(AgentRow.id).where(or_(is_disabled, and_(AgentRow.lost.is_(True), of_it.exists())))
    return list(await session.scalars(query.order_by(AgentRow.id)))


async def present(session: ReadSession) -> Sequence[AgentRow]:
    """Returns the agents that are connected or within their reconnect window."""
    return await _PRESENT.scalars(session)


_PRESENT = Prepared(select(AgentRow).where(AgentRow.lost.is_(False)).order_by(AgentRow.id))


async def clock_skews(session: ReadSession, agent_ids: Collection[str]) -> dict[str, int]:
    """Returns the seconds by which the clocks of agents differ from the master's; only those that do."""
    query = select(AgentRow.id, AgentRow.clock_skew).where(AgentRow.id.in_(agent_ids), AgentRow.clock_skew != 0)
    return {row.id: row.clock_skew for row in await session.execute(query)}


async def have_containers(session: ReadSession) -> bool:
    """Returns True if an agent that is connected or within its reconnect window runs tasks in containers."""
    query = select(AgentRow.id).where(AgentRow.lost.is_(False), AgentRow.container_runtime != "process")
    return (await session.scalars(query.limit(1))).first() is not None


async def count(session: ReadSession) -> int:
    """Returns the number of agents that are connected or within their reconnect window."""
    return (
        await session.execute(select(func.count()).select_from(AgentRow).where(AgentRow.lost.is_(False)))
    ).scalar_one()


async def page(
    session: ReadSession, *, by: Order = "id", descending: bool = False, offset: int = 0, limit: int | None = None
) -> Sequence[AgentRow]:
    """Returns one page of the agents that are connected or within their reconnect window."""
    columns = (AgentRow.id,) if by == "id" else (AgentRow.registered_at, AgentRow.id)
    order = [column.desc() for column in columns] if descending else columns
    query = select(AgentRow).where(AgentRow.lost.is_(False)).order_by(*order)
    return (await session.scalars(query.offset(offset).limit(limit))).all()


async def slots(
    session: ReadSession, agent_id: str | None = None, *, agent_ids: Collection[str] | None = None
) -> Sequence[AgentSlotRow]:
    """Returns the slots of one agent, of some, or of all."""
    if agent_id is None and agent_ids is None:
        return await _SLOTS.scalars(session)
    query = select(AgentSlotRow).order_by(AgentSlotRow.agent_id, AgentSlotRow.slot_id)
    if agent_id is not None:
        query = query.where(AgentSlotRow.agent_id == agent_id)
    if agent_ids is not None:
        query = query.where(AgentSlotRow.agent_id.in_(agent_ids))
    return (await session.scalars(query)).all()


_SLOTS = Prepared(select(AgentSlotRow).order_by(AgentSlotRow.agent_id, AgentSlotRow.slot_id))


async def get_slot(session: ReadSession, agent_id: str, slot_id: int) -> AgentSlotRow:
    row = await session.get(AgentSlotRow, (agent_id, slot_id))
    if row is None:
        raise NotFound(f"slot '{slot_id}' not found on agent '{agent_id}'")
    return row


async def save(session: WriteSession, row: AgentRow) -> None:
    session.add(row)
    await session.flush()
    note(session, "agents", [row.id])
    notify(session, notifications.CLUSTER)


async def change(session: WriteSession, agent_id: str, **values: object) -> None:
    await session.execute(update(AgentRow).where(AgentRow.id == agent_id).values(**values))
    note(session, "agents", [agent_id])
    notify(session, notifications.CLUSTER)
    if not values.keys().isdisjoint(("enabled", "draining", "lost")):
        notify(session, notifications.ENVIRONMENTS)  # a disabled agent builds nothing more


async def change_all(session: WriteSession, **values: object) -> None:
    changed = await session.scalars(
        update(AgentRow).where(AgentRow.lost.is_(False)).values(**values).returning(AgentRow.id)
    )
    note(session, "agents", changed)
    notify(session, notifications.CLUSTER)


async def change_slot(session: WriteSession, agent_id: str, slot_id: int, **values: object) -> None:
    await session.execute(
        update(AgentSlotRow).where(AgentSlotRow.agent_id == agent_id, AgentSlotRow.slot_id == slot_id).values(**values)
    )
    note(session, "agents", [agent_id])
    notify(session, notifications.CLUSTER)


async def set_slots(session: WriteSession, agent_id: str, facts: Sequence[SlotFacts]) -> None:
    """Stores the slots that the agent reports. A known slot keeps its enabled flag."""
    note(session, "agents", [agent_id])
    known = {row.slot_id: row for row in await slots(session, agent_id)}
    gone = set(known) - {f.id for f in facts}
    if gone:
        await session.execute(
            delete(AgentSlotRow).where(AgentSlotRow.agent_id == agent_id, AgentSlotRow.slot_id.in_(gone))
        )
    # By number: a slot that is reported twice is stored once.
    now = {fact.id: {"type": fact.type, "brand": fact.brand, "uuid": fact.uuid} for fact in facts}
    fresh = [{"agent_id": agent_id, "slot_id": id_, **values} for id_, values in now.items() if id_ not in known]
    await insert_rows(session, table_of(AgentSlotRow), fresh)
    changed = [
        {"of_agent": agent_id, "of_slot": id_} | {f"to_{name}": value for name, value in values.items()}
        for id_, values in now.items()
        if id_ in known and any(getattr(known[id_], name) != value for name, value in values.items())
    ]
    if changed:
        await _SET_FACTS.execute(session, changed)
    notify(session, notifications.CLUSTER)


_SLOT_ROWS = table_of(AgentSlotRow)
_IS_SLOT = (_SLOT_ROWS.c.agent_id == bindparam("of_agent"), _SLOT_ROWS.c.slot_id == bindparam("of_slot"))
_SET_FACTS: Prepared[()] = Prepared(
    update(_SLOT_ROWS)
    .where(*_IS_SLOT)
    .values(type=bindparam("to_type"), brand=bindparam("to_brand"), uuid=bindparam("to_uuid"))
)
_SET_STATUS: Prepared[()] = Prepared(
    update(_SLOT_ROWS).where(*_IS_SLOT).values(status=bindparam("to_status"), status_reason=bindparam("to_reason"))
)


async def set_statuses(session: WriteSession, agent_id: str, statuses: Sequence[SlotStatus]) -> None:
    """Stores what an agent sees of some of its slots, in one statement."""
    rows = [
        {"of_agent": agent_id, "of_slot": each.id, "to_status": each.status, "to_reason": each.reason}
        for each in statuses
    ]
    if rows:
        await _SET_STATUS.execute(session, rows)
        note(session, "agents", [agent_id])
        notify(session, notifications.CLUSTER)
