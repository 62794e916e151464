"""SQL for tasks that hold no slots while a Python environment is built for them."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, delete, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute

from determined.states import TaskState, TrialState
from determined_master import notifications
from determined_master.allocations.repository import LIVE, MAX_IDS_A_STATEMENT
from determined_master.db.models import (
    AgentRow,
    AllocationRow,
    ContainerRow,
    EnvironmentWaitRow,
    TaskRow,
    TrialRow,
)
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.db.statements.batches import batched
from determined_master.db.statements.named_columns import columns_of


class EnvironmentWait(NamedTuple):
    """A task that waits for an environment of one agent.

    ``is_wanted``: the task is active, and its agent may still build. ``build_id``: the task that builds, None until
    there is one. ``build_state``: of that task. ``is_over``: the build has ended.
    """

    task_id: str
    agent_id: str
    key: str
    allocation_id: str
    build_id: str | None
    build_state: TaskState | None
    is_over: bool
    is_wanted: bool


class LackingAttempt(NamedTuple):
    """An attempt that holds slots although an agent of it lacks its environment."""

    allocation_id: str
    task_id: str
    agent_id: str
    key: str


class AwaitedBuild(NamedTuple):
    """A build for which a task waits."""

    key: str
    agent_id: str
    build_id: str | None


_IS_OPEN: ColumnElement[bool] = EnvironmentWaitRow.is_over.is_(False)


def is_waiting(task_id: ColumnElement[str] | InstrumentedAttribute[str]) -> ColumnElement[bool]:
    """Returns the condition that a task waits for a build that has not ended."""
    return select(EnvironmentWaitRow.task_id).where(EnvironmentWaitRow.task_id == task_id, _IS_OPEN).exists()


async def lacking(session: ReadSession) -> list[LackingAttempt]:
    """Returns the live attempts whose containers report that they lack an environment, the oldest first."""
    query = (
        select(AllocationRow.id, AllocationRow.task_id, ContainerRow.agent_id, ContainerRow.needed_environment)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(
            AllocationRow.state.in_(LIVE),
            AllocationRow.kill_requested_at.is_(None),
            ContainerRow.is_live(),
            ContainerRow.needed_environment != "",
        )
        .order_by(AllocationRow.created_at, ContainerRow.rank)
    )
    return [LackingAttempt(*row) for row in await session.execute(query)]


async def waits(session: ReadSession) -> list[EnvironmentWait]:
    """Returns all waits, the oldest attempt first."""
    build = table_of(TaskRow).alias("build")
    is_active = or_(TrialRow.state == TrialState.ACTIVE, and_(TrialRow.id.is_(None), TaskRow.state == TaskState.ACTIVE))
    can_build = and_(AgentRow.enabled.is_(True), AgentRow.draining.is_(False), AgentRow.lost.is_(False))
    query = (
        select(
            *columns_of(
                EnvironmentWait,
                task_id=EnvironmentWaitRow.task_id,
                agent_id=EnvironmentWaitRow.agent_id,
                key=EnvironmentWaitRow.environment_key,
                allocation_id=EnvironmentWaitRow.allocation_id,
                build_id=EnvironmentWaitRow.build_id,
                build_state=build.c.state,
                is_over=EnvironmentWaitRow.is_over,
                is_wanted=and_(is_active, AgentRow.id.is_not(None), can_build),
            )
        )
        .join(TaskRow, TaskRow.id == EnvironmentWaitRow.task_id)
        .join(AllocationRow, AllocationRow.id == EnvironmentWaitRow.allocation_id)
        .outerjoin(TrialRow, TrialRow.task_id == EnvironmentWaitRow.task_id)
        .outerjoin(AgentRow, AgentRow.id == EnvironmentWaitRow.agent_id)
        .outerjoin(build, build.c.id == EnvironmentWaitRow.build_id)
        .order_by(AllocationRow.created_at, EnvironmentWaitRow.task_id)
    )
    found = [EnvironmentWait(*row) for row in await session.execute(query)]
    return [wait._replace(is_wanted=bool(wait.is_wanted)) for wait in found]  # NULL where the agent is gone


async def building_for(session: ReadSession, task_ids: Collection[str]) -> dict[str, AwaitedBuild]:
    """Returns, by task, the first build for which each of the tasks waits; tasks that do not wait are absent."""
    query = (
        select(EnvironmentWaitRow.task_id, EnvironmentWaitRow.environment_key)
        .add_columns(EnvironmentWaitRow.agent_id, EnvironmentWaitRow.build_id)
        .where(EnvironmentWaitRow.task_id.in_(list(task_ids)), _IS_OPEN)
        .order_by(EnvironmentWaitRow.agent_id.desc())
    )
    return {task_id: AwaitedBuild(*rest) for task_id, *rest in await session.execute(query)}


async def experiments_waiting(session: ReadSession, experiment_ids: Collection[int]) -> set[int]:
    """Returns those of the experiments of which an active trial waits."""
    found: set[int] = set()
    for batch in batched(list(experiment_ids), MAX_IDS_A_STATEMENT):
        found.update(await session.scalars(_EXPERIMENTS_WAITING, {"ids": batch}))
    return found


_EXPERIMENTS_WAITING = (
    select(TrialRow.experiment_id)
    .join(EnvironmentWaitRow, EnvironmentWaitRow.task_id == TrialRow.task_id)
    .where(_IS_OPEN, TrialRow.state == TrialState.ACTIVE, TrialRow.experiment_id.in_(bindparam("ids", expanding=True)))
)


async def is_released(session: ReadSession, allocation_id: str) -> bool:
    """Returns True for an attempt that gave its slots back because its environment has to be built."""
    query = select(EnvironmentWaitRow.task_id).where(EnvironmentWaitRow.allocation_id == allocation_id).limit(1)
    return (await session.scalars(query)).first() is not None


async def has_waiting(session: ReadSession, build_id: str) -> bool:
    """Returns True if a task waits for the build."""
    query = select(EnvironmentWaitRow.task_id).where(EnvironmentWaitRow.build_id == build_id, _IS_OPEN).limit(1)
    return (await session.scalars(query)).first() is not None


async def add(session: WriteSession, lacked: Sequence[LackingAttempt]) -> None:
    """Adds waits of attempts that are about to end; a task may wait for several agents."""
    for attempt in lacked:
        key = (attempt.task_id, attempt.agent_id, attempt.key)
        row = await session.get(EnvironmentWaitRow, key)
        if row is None:
            session.add(
                EnvironmentWaitRow(
                    task_id=attempt.task_id,
                    agent_id=attempt.agent_id,
                    environment_key=attempt.key,
                    allocation_id=attempt.allocation_id,
                )
            )
    await session.flush()
    _announce(session, {each.task_id for each in lacked})


async def set_build(session: WriteSession, wait: EnvironmentWait, build_id: str) -> None:
    await session.execute(update(EnvironmentWaitRow).where(*_is(wait)).values(build_id=build_id))
    _announce(session, [wait.task_id])


async def end(session: WriteSession, wait: EnvironmentWait) -> None:
    """Ends a wait whose build has ended: the task asks for slots again."""
    await session.execute(update(EnvironmentWaitRow).where(*_is(wait)).values(is_over=True))
    _announce(session, [wait.task_id])


async def drop(session: WriteSession, wait: EnvironmentWait) -> None:
    """Removes a wait of a task that no longer waits, or for an agent that cannot build."""
    await session.execute(delete(EnvironmentWaitRow).where(*_is(wait)))
    _announce(session, [wait.task_id])


async def take_ended(session: WriteSession, task_ids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Removes the ended waits of tasks that get another attempt. Returns agent and key of each, by task."""
    ended: dict[str, list[tuple[str, str]]] = defaultdict(list)
    query = select(EnvironmentWaitRow).where(EnvironmentWaitRow.task_id.in_(task_ids))
    for row in await session.scalars(query):
        ended[row.task_id].append((row.agent_id, row.environment_key))
        await session.delete(row)
    await session.flush()
    return ended


def _is(wait: EnvironmentWait) -> tuple[ColumnElement[bool], ...]:
    return (
        EnvironmentWaitRow.task_id == wait.task_id,
        EnvironmentWaitRow.agent_id == wait.agent_id,
        EnvironmentWaitRow.environment_key == wait.key,
    )


def _announce(session: WriteSession, task_ids: Collection[str]) -> None:
    for task_id in task_ids:
        notify(session, notifications.task(task_id), notifications.logs(task_id))
    notify(session, notifications.TRIALS, notifications.TASKS, notifications.ENVIRONMENTS)
