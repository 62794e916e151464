"""SQL for instances, and the one function that changes their states."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from determined.errors import NotFound
from determined.states import InstanceState
from determined_master import notifications
from determined_master.clock import Clock
from determined_master.db.models import InstanceRow
from determined_master.db.models.base import EARLIEST
from determined_master.db.session import ReadSession, WriteSession, note, notify
from determined_master.events import repository as events
from determined_master.events.state_machine import Event, StateMachine
from determined_master.providers.provider import agents_of
from determined_master.providers.states import ALLOWED

MACHINE = StateMachine("agent", InstanceRow, InstanceRow.agent_id, ALLOWED)
_LIVE = [state for state in InstanceState if state.is_live]


@dataclass(frozen=True)
class Failures:
    """Launches that failed since the last agent of a pool registered."""

    count: int = 0
    last: str = ""


async def live(session: ReadSession, pool: str | None = None) -> Sequence[InstanceRow]:
    """Returns the instances that have not ended, oldest first: of one pool or of all."""
    query = select(InstanceRow).where(InstanceRow.state.in_(_LIVE))
    if pool is not None:
        query = query.where(InstanceRow.pool == pool)
    return (await session.scalars(query.order_by(InstanceRow.requested_at, InstanceRow.agent_id))).all()


async def find(session: ReadSession, agent_id: str) -> InstanceRow | None:
    return await session.get(InstanceRow, agent_id)


async def ended(session: ReadSession, agent_id: str) -> str | None:
    """Returns why an agent that its provider has ended, or is ending, did not start: the end of a sentence, empty if it
    had started. None for every other agent."""
    row = await find(session, agent_id) or await _of_several(session, agent_id)
    if row is None or row.state in (InstanceState.STARTING, InstanceState.RUNNING):
        return None
    return f": {row.failure}" if row.failure else ""


async def _of_several(session: ReadSession, agent_id: str) -> InstanceRow | None:
    """Returns the instance of an agent that is one of several."""
    name, _, number = agent_id.rpartition("-")
    row = await find(session, name) if number.isdecimal() else None
    return row if row is not None and agent_id in agents_of(name, row.provider.get("nodes", 1)) else None


async def get(session: ReadSession, agent_id: str) -> InstanceRow:
    row = await find(session, agent_id)
    if row is None:
        raise NotFound(f"no provider has started an agent {agent_id!r}")
    return row


async def failures(session: ReadSession, pool: str) -> Failures:
    """Returns how often a launch failed since the last agent of the pool registered and stayed for a while, and why
    the last time."""
    last_start = select(func.max(InstanceRow.requested_at)).where(
        InstanceRow.pool == pool, InstanceRow.started_at.is_not(None), InstanceRow.failure == ""
    )
    since: datetime = (await session.scalar(last_start)) or EARLIEST
    query = (
        select(InstanceRow.failure)
        .where(
            InstanceRow.pool == pool,
            InstanceRow.requested_at > since,
            InstanceRow.state.in_([InstanceState.ENDING, InstanceState.ENDED]),
            InstanceRow.failure != "",
        )
        .order_by(InstanceRow.requested_at.desc(), InstanceRow.agent_id)
    )
    found = (await session.scalars(query)).all()
    return Failures(len(found), found[0]) if found else Failures()


async def add(session: WriteSession, clock: Clock, rows: Collection[InstanceRow]) -> None:
    session.add_all(rows)
    await session.flush()
    payloads = {row.agent_id: {"pool": row.pool} for row in rows}
    await events.record_many(
        session, clock, actor=events.SYSTEM, kind="ordered", target_type="agent", payloads=payloads
    )
    _announce(session, *(row.pool for row in rows))


async def move(
    session: WriteSession,
    clock: Clock,
    row: InstanceRow,
    to: InstanceState,
    kind: str,
    reason: str = "",
    **values: object,
) -> bool:
    """Changes the state of an instance, see ``StateMachine.move``; ``kind`` and ``reason`` are of the event."""
    payload = {"pool": row.pool} | ({"reason": reason} if reason else {})
    if not await MACHINE.move(session, clock, row, to, Event(kind=kind, payload=payload), **values):
        return False
    _announce(session, row.pool)
    return True


async def set_waiting(session: WriteSession, row: InstanceRow, waiting: str, start_estimate: datetime | None) -> None:
    """Stores why an instance waits in a queue outside the cluster, and until when probably."""
    if (row.waiting, row.start_estimate) == (waiting, start_estimate):
        return
    row.waiting, row.start_estimate = waiting, start_estimate
    await session.flush()
    _announce(session, row.pool)


async def set_end_failure(session: WriteSession, clock: Clock, row: InstanceRow, reason: str) -> None:
    """Stores why an instance could not be ended; recorded when the reason is another one than before."""
    if row.end_failure == reason:
        return
    row.end_failure = reason
    await session.flush()
    await events.record(
        session,
        clock,
        actor=events.SYSTEM,
        kind="not_ended",
        target_type="agent",
        target_id=row.agent_id,
        payload={"pool": row.pool, "reason": reason},
    )
    _announce(session, row.pool)


def _announce(session: WriteSession, *pools: str) -> None:
    """The reasons for waiting name the agents that start, and the page shows them."""
    note(session, "pools", pools)
    notify(session, notifications.SCHEDULE, notifications.CLUSTER)
