"""SQL for the live containers of agents."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, or_, select

from determined.states import AllocationState, ContainerState, TokenScope
from determined_master.allocations.repository import LIVE
from determined_master.auth.principal import Principal
from determined_master.db.models import AllocationRow, ContainerRow, TaskRow, TrialRow, UserRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.named_columns import columns_of
from determined_master.db.statements.prepared import Prepared


async def live_on_agent(
    session: ReadSession, agent_id: str, *, most: int | None = None, with_killed: bool = True
) -> Sequence[tuple[ContainerRow, AllocationRow]]:
    """Returns the containers that have not ended, each with its allocation; the first ``most`` of them.

    ``with_killed`` False: only of allocations that have not ended and are not being killed.
    """
    query = (
        select(ContainerRow, AllocationRow)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(ContainerRow.agent_id == agent_id, ContainerRow.is_live())
        .order_by(ContainerRow.id)
        .limit(most)
    )
    if not with_killed:
        query = query.where(AllocationRow.kill_requested_at.is_(None), AllocationRow.state.in_(LIVE))
    return [(c, a) for c, a in (await session.execute(query)).all()]


async def with_output_on_agent(session: ReadSession, agent_id: str) -> Sequence[tuple[ContainerRow, AllocationRow]]:
    """Returns the ended containers whose end of the output is not reported, each with its allocation."""
    query = (
        select(ContainerRow, AllocationRow)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(
            ContainerRow.agent_id == agent_id,
            ContainerRow.state == ContainerState.TERMINATED,
            ContainerRow.output_done.is_(False),
        )
    )
    return [(c, a) for c, a in (await session.execute(query)).all()]


class WantedContainer(NamedTuple):
    """A container that has not ended."""

    id: str
    allocation_id: str
    state: AllocationState
    """State of the allocation."""
    kill_requested_at: datetime | None


async def wanted_on_agent(session: ReadSession, agent_id: str) -> list[WantedContainer]:
    """Returns the containers that have not ended, by id."""
    return [WantedContainer(*row) for row in await _WANTED.rows(session, agent_id=agent_id)]


_WANTED = Prepared(
    select(ContainerRow.id, AllocationRow.id, AllocationRow.state, AllocationRow.kill_requested_at)
    .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
    .where(ContainerRow.agent_id == bindparam("agent_id"), ContainerRow.is_live())
    .order_by(ContainerRow.id)
)


class SpecifiedContainer(NamedTuple):
    """A container with what its agent needs to start it."""

    id: str
    rank: int
    slot_ids: list[int]
    allocation_id: str
    slots: int
    """Number of slots of the allocation."""
    port_block: int | None
    spec: dict[str, Any]
    principal: Principal
    """For whom the token of its task acts."""


async def with_specs(session: ReadSession, container_ids: Collection[str]) -> list[SpecifiedContainer]:
    rows = await _SPECIFIED.rows(session, container_ids=list(container_ids))
    return [_specified(_SpecifiedRow(*row)) for row in rows]


class _SpecifiedRow(NamedTuple):
    id: str
    rank: int
    slot_ids: list[int]
    allocation_id: str
    slots: int
    port_block: int | None
    spec: dict[str, Any]
    user_id: int
    username: str
    is_admin: bool
    task_id: str
    scope: TokenScope
    trial_id: int | None


def _specified(row: _SpecifiedRow) -> SpecifiedContainer:
    principal = Principal(
        user_id=row.user_id,
        username=row.username,
        admin=row.is_admin,
        allocation_id=row.allocation_id,
        task_id=row.task_id,
        scope=row.scope,
        trial_id=row.trial_id,
    )
    return SpecifiedContainer(
        id=row.id,
        rank=row.rank,
        slot_ids=row.slot_ids,
        allocation_id=row.allocation_id,
        slots=row.slots,
        port_block=row.port_block,
        spec=row.spec,
        principal=principal,
    )


_SPECIFIED = Prepared(
    select(
        *columns_of(
            _SpecifiedRow,
            id=ContainerRow.id,
            rank=ContainerRow.rank,
            slot_ids=ContainerRow.slot_ids,
            allocation_id=AllocationRow.id,
            slots=AllocationRow.slots,
            port_block=AllocationRow.port_block,
            spec=AllocationRow.spec,
            user_id=UserRow.id,
            username=UserRow.username,
            is_admin=UserRow.admin,
            task_id=TaskRow.id,
            scope=TaskRow.token_scope,
            trial_id=TrialRow.id,
        )
    )
    .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
    .join(TaskRow, TaskRow.id == AllocationRow.task_id)
    .join(UserRow, UserRow.id == AllocationRow.user_id)
    .outerjoin(TrialRow, TrialRow.task_id == TaskRow.id)
    .where(ContainerRow.id.in_(bindparam("container_ids", expanding=True)))
)


class LastReport(NamedTuple):
    """What is stored of the reports of a container."""

    id: str
    state: ContainerState
    needed_environment: str
    runtime_id: str


async def reported_on_agent(session: ReadSession, agent_id: str) -> list[LastReport]:
    """Returns what is stored of the reports of each container that has not ended."""
    return [LastReport(*row) for row in await _REPORTED.rows(session, agent_id=agent_id)]


_REPORTED = Prepared(
    select(ContainerRow.id, ContainerRow.state, ContainerRow.needed_environment, ContainerRow.runtime_id).where(
        ContainerRow.agent_id == bindparam("agent_id"), ContainerRow.is_live()
    )
)


async def live_on_agents(
    session: ReadSession, agent_ids: Collection[str]
) -> dict[str, list[tuple[ContainerRow, AllocationRow]]]:
    """Returns the containers that have not ended, each with its allocation, by agent."""
    query = (
        select(ContainerRow, AllocationRow)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(ContainerRow.agent_id.in_(agent_ids), ContainerRow.is_live())
        .order_by(ContainerRow.id)
    )
    found: dict[str, list[tuple[ContainerRow, AllocationRow]]] = {}
    for container, allocation in (await session.execute(query)).all():
        found.setdefault(container.agent_id, []).append((container, allocation))
    return found


async def agents_with_containers(session: ReadSession, agent_ids: Collection[str]) -> set[str]:
    """Returns those of the agents on which a container has not ended, or has output that was not sent yet."""
    query = select(ContainerRow.agent_id).where(
        ContainerRow.agent_id.in_(agent_ids),
        or_(ContainerRow.is_live(), ContainerRow.output_done.is_(False)),
    )
    return set(await session.scalars(query.distinct()))


async def agents_of_zero_slot_containers(session: ReadSession) -> Sequence[str]:
    """Returns the agent of each live container without slots; an agent with several is repeated."""
    return await _WITHOUT_SLOTS.scalars(session)


async def zero_slot_containers_of(session: ReadSession, agent_ids: Sequence[str]) -> Sequence[str]:
    """Returns the agent of each live container without slots of these agents; one with several is repeated."""
    return await _WITHOUT_SLOTS_OF.scalars(session, agent_ids=agent_ids)


_ZERO_SLOTS = select(ContainerRow.agent_id).where(
    ContainerRow.is_live(), func.json_array_length(ContainerRow.slot_ids) == 0
)
_WITHOUT_SLOTS = Prepared(_ZERO_SLOTS)
_WITHOUT_SLOTS_OF = Prepared(_ZERO_SLOTS.where(ContainerRow.agent_id.in_(bindparam("agent_ids", expanding=True))))


async def agents_of_live(session: ReadSession) -> dict[str, list[str]]:
    """Returns the agents of the live allocations, by allocation and in the order of their ranks."""
    query = (
        select(ContainerRow.allocation_id, ContainerRow.agent_id)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(AllocationRow.state.in_(LIVE))
        .order_by(ContainerRow.allocation_id, ContainerRow.rank)
    )
    found: dict[str, list[str]] = {}
    for allocation_id, agent_id in await session.execute(query):
        agents = found.setdefault(allocation_id, [])
        if agent_id not in agents:
            agents.append(agent_id)
    return found
