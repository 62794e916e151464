"""SQL for agents that leave at a known time, and for what runs on them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BigInteger, ColumnElement, func, or_, select, tuple_, type_coerce

from determined.states import ExitReason, TaskKind, TrialState
from determined_master.db.models import AgentRow, AllocationRow, ContainerRow, ExperimentRow, TaskRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.named_columns import columns_of

_GRACE = ExperimentRow.config["pause"]["grace"].as_float()


class KnownDeparture(NamedTuple):
    agent_id: str
    registered_at: datetime
    leaves_at: datetime | None
    leaves_why: str
    has_time_limit: bool
    leaving: bool


class OnLeavingAgent(NamedTuple):
    """A container on an agent that leaves."""

    allocation_id: str
    agent_id: str
    task_id: str
    kind: TaskKind
    experiment_id: int | None
    preemption_timeout: int
    preempt_requested_at: datetime | None
    kill_requested_at: datetime | None
    grace_seconds: float | None
    """``pause.grace`` of its experiment: what a script may take that is asked by a signal."""


_DEPARTURE = (
    *(AgentRow.id, AgentRow.registered_at, AgentRow.leaves_at),
    *(AgentRow.leaves_why, AgentRow.has_time_limit, AgentRow.leaving),
)


async def agents(session: ReadSession) -> list[KnownDeparture]:
    """Returns the agents of which it is known when they leave, or that are closed because it was."""
    query = (
        select(*_DEPARTURE)
        .where(AgentRow.lost.is_(False), or_(AgentRow.leaves_at.is_not(None), AgentRow.leaving.is_(True)))
        .order_by(AgentRow.id)
    )
    return [KnownDeparture(*row) for row in await session.execute(query)]


async def of_attempt(session: ReadSession, allocation_id: str) -> list[KnownDeparture]:
    """Returns the agents of an attempt, also those that are gone."""
    query = (
        select(*_DEPARTURE)
        .join(ContainerRow, ContainerRow.agent_id == AgentRow.id)
        .where(ContainerRow.allocation_id == allocation_id)
        .order_by(AgentRow.leaves_at)
    )
    return [KnownDeparture(*row) for row in await session.execute(query)]


async def on_agents(session: ReadSession, agent_ids: Sequence[str]) -> list[OnLeavingAgent]:
    """Returns the live containers on these agents."""
    query = (
        select(
            *columns_of(
                OnLeavingAgent,
                allocation_id=ContainerRow.allocation_id,
                agent_id=ContainerRow.agent_id,
                task_id=AllocationRow.task_id,
                kind=TaskRow.kind,
                experiment_id=TrialRow.experiment_id,
                preemption_timeout=AllocationRow.preemption_timeout,
                preempt_requested_at=AllocationRow.preempt_requested_at,
                kill_requested_at=AllocationRow.kill_requested_at,
                grace_seconds=_GRACE,
            )
        )
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .join(TaskRow, TaskRow.id == AllocationRow.task_id)
        .outerjoin(TrialRow, TrialRow.task_id == AllocationRow.task_id)
        .outerjoin(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
        .where(ContainerRow.agent_id.in_(agent_ids), ContainerRow.is_live())
        .order_by(ContainerRow.allocation_id, ContainerRow.agent_id)
    )
    return [OnLeavingAgent(*row) for row in await session.execute(query)]


async def last_saves(session: ReadSession, task_ids: Collection[str]) -> dict[str, float]:
    """Returns how long the last save of each task took in seconds, from the request to the end of the attempt."""
    saved = (AllocationRow.task_id.in_(task_ids), *_WERE_SAVED)
    last = select(AllocationRow.task_id, func.max(AllocationRow.ended_at)).where(*saved).group_by(AllocationRow.task_id)
    query = select(AllocationRow.task_id, _DURATION).where(
        tuple_(AllocationRow.task_id, AllocationRow.ended_at).in_(last), *_WERE_SAVED
    )
    return {task_id: float(micros) / 1e6 for task_id, micros in (await session.execute(query)).all()}


async def longest_save(session: ReadSession) -> float | None:
    """Returns the longest time in seconds that a save took, or that a script may take for it (``pause.grace``), of all
    experiments with a trial that has not ended."""
    live = select(TrialRow.experiment_id).where(TrialRow.state.in_([state for state in TrialState if state.is_live]))
    query = select(func.max(_DURATION)).join(TrialRow, TrialRow.task_id == AllocationRow.task_id)
    micros = await session.scalar(query.where(TrialRow.experiment_id.in_(live), *_WERE_SAVED))
    grace = await session.scalar(select(func.max(_GRACE)).where(ExperimentRow.id.in_(live)))
    known = [*([] if micros is None else [float(micros) / 1e6]), *([] if grace is None else [float(grace)])]
    return max(known, default=None)


def _micros(column: ColumnElement[datetime | None]) -> ColumnElement[int]:
    return type_coerce(column, BigInteger)


_DURATION = _micros(AllocationRow.ended_at.expression) - _micros(AllocationRow.preempt_requested_at.expression)
_WERE_SAVED = (AllocationRow.exit_reason == ExitReason.PREEMPTED, AllocationRow.preempt_requested_at.is_not(None))
