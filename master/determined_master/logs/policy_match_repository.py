"""SQL for log policies and what they matched. Functions that take a Connection run in the group-commit writer's
thread."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, bindparam, insert, select, update

from determined.states import TrialState
from determined_master.db.models import AllocationRow, ContainerRow, ExperimentRow, LogPolicyMatchRow, TrialRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession
from determined_master.db.statements.batches import batched
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import delete_rows
from determined_master.events import repository as events
from determined_master.logs.policies import Action, AttemptPolicies, Policy, policies_of

MAX_LINE_CHARACTERS = 1000
MAX_IDS_A_STATEMENT = 10_000
_M, _A, _C = table_of(LogPolicyMatchRow), table_of(AllocationRow), table_of(ContainerRow)
_T, _X = table_of(TrialRow), table_of(ExperimentRow)
_LIVE = [state for state in TrialState if state.is_live]


@dataclass(frozen=True)
class Attempt:
    """An attempt of a trial whose lines are compared."""

    allocation_id: str
    task_id: str
    trial_id: int
    experiment_id: int


def policies(connection: Connection, task_id: str, allocation_id: str) -> tuple[Attempt, AttemptPolicies] | None:
    """Returns the policies of an attempt that have not matched yet; None for a task that is no live trial."""
    found = connection.execute(_POLICIES, {"task_id": task_id, "allocation_id": allocation_id}).first()
    if found is None:
        return None
    trial_id, experiment_id, listed = found
    matched = set(connection.scalars(_MATCHED, {"allocation_id": allocation_id}))
    remaining = [each for each in policies_of(listed) if each.position not in matched]
    return Attempt(allocation_id, task_id, trial_id, experiment_id), AttemptPolicies(remaining)


async def listed(session: ReadSession, task_id: str, allocation_id: str) -> list[Policy]:
    """Returns the policies of an attempt, whether they have matched or not; none for a task that is no live trial."""
    values = {"task_id": task_id, "allocation_id": allocation_id}
    found = (await session.execute(_POLICIES, values)).first()
    return policies_of(found[2]) if found is not None else []


_POLICIES = (
    select(_T.c.id, _X.c.id, _X.c.config["log_policies"])
    .join(_X, _X.c.id == _T.c.experiment_id)
    .join(_A, _A.c.task_id == _T.c.task_id)
    .where(_T.c.task_id == bindparam("task_id"), _A.c.id == bindparam("allocation_id"), _T.c.state.in_(_LIVE))
)
_MATCHED = select(_M.c.position).where(_M.c.allocation_id == bindparam("allocation_id"))


def newest_allocation(connection: Connection, task_id: str) -> str | None:
    return connection.scalar(_newest(task_id))


async def newest_allocation_of(session: ReadSession, task_id: str) -> str | None:
    return await session.scalar(_newest(task_id))


def _newest(task_id: str) -> Select[str]:
    return select(_A.c.id).where(_A.c.task_id == task_id).order_by(_A.c.run_id.desc()).limit(1)


def agent_of(connection: Connection, attempt: Attempt, container_id: str | None) -> str | None:
    """Returns the agent of a line that does not name it: its container's, or the only one of the attempt."""
    query = select(_C.c.agent_id).distinct().where(_C.c.allocation_id == attempt.allocation_id)
    if container_id:
        query = query.where(_C.c.id == container_id)
    found = connection.execute(query).scalars().all()
    return found[0] if len(found) == 1 else None


def add(
    connection: Connection, attempt: Attempt, policy: Policy, line: str, agent_id: str | None, now: datetime
) -> None:
    """Records a match and its event."""
    values = {
        "trial_id": attempt.trial_id,
        "task_id": attempt.task_id,
        "allocation_id": attempt.allocation_id,
        "position": policy.position,
        "name": policy.name,
        "pattern": policy.pattern,
        "action": policy.action,
        "agent_id": agent_id,
        "is_void": False,
        "line": line[:MAX_LINE_CHARACTERS],
        "time": now,
    }
    connection.execute(insert(_M).values(values))
    payload = {"policy": policy.title, "action": policy.action, "sequel": policy.sequel(agent_id)}
    rows = [("log_policy_matched", attempt.trial_id, payload)]
    events.insert_events(connection, now, target_type="trial", rows=rows)


def note_off(connection: Connection, attempt: Attempt, now: datetime) -> None:
    """Records that the rest of the attempt is not compared."""
    rows: list[tuple[str, object, dict[str, str]]] = [("log_policies_off", attempt.trial_id, {})]
    events.insert_events(connection, now, target_type="trial", rows=rows)


def policy_of(row: LogPolicyMatchRow) -> Policy:
    action: Action | None = "cancel_retries" if row.action == "cancel_retries" else None
    action = "exclude_node" if row.action == "exclude_node" else action
    return Policy(row.position, row.name, row.pattern, action)


async def matches_of(session: ReadSession, task_id: str) -> Sequence[LogPolicyMatchRow]:
    """Returns what the attempts of a task matched, oldest first."""
    query = select(LogPolicyMatchRow).where(LogPolicyMatchRow.task_id == task_id).order_by(LogPolicyMatchRow.id)
    return (await session.scalars(query)).all()


async def newest_names(session: ReadSession, task_ids: Collection[str]) -> dict[str, str]:
    """Returns by task the name, or else the pattern, of the policy that matched last; others are absent."""
    query = select(LogPolicyMatchRow.task_id, LogPolicyMatchRow.name, LogPolicyMatchRow.pattern)
    query = query.where(LogPolicyMatchRow.task_id.in_(task_ids)).order_by(LogPolicyMatchRow.id)
    return {task_id: name or pattern for task_id, name, pattern in await session.execute(query)}


async def excluded_agents(session: ReadSession, task_ids: Collection[str]) -> dict[str, frozenset[str]]:
    """Returns by task the agents on which its later attempts must not run; others are absent."""
    found: dict[str, frozenset[str]] = {}
    for task_id, agent_id in await _EXCLUDED.rows(session, task_ids=list(task_ids)):
        if agent_id is not None:
            found[task_id] = found.get(task_id, frozenset()) | {agent_id}
    return found


_EXCLUDED = Prepared(
    select(LogPolicyMatchRow.task_id, LogPolicyMatchRow.agent_id).where(
        LogPolicyMatchRow.task_id.in_(bindparam("task_ids", expanding=True)),
        LogPolicyMatchRow.action == "exclude_node",
        LogPolicyMatchRow.is_void.is_(False),
    )
)


async def void(session: WriteSession, trial_ids: Sequence[int]) -> None:
    """Ends the effect of what trials have matched so far."""
    for batch in batched(trial_ids, MAX_IDS_A_STATEMENT):
        await session.execute(
            update(LogPolicyMatchRow).where(LogPolicyMatchRow.trial_id.in_(batch)).values(is_void=True)
        )


async def drop_some(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes up to ``most`` matches of an experiment's trials and returns their number."""
    trials = select(TrialRow.id).where(TrialRow.experiment_id == experiment_id)
    some = select(LogPolicyMatchRow.id).where(LogPolicyMatchRow.trial_id.in_(trials)).limit(most)
    return await delete_rows(session, LogPolicyMatchRow, some)
