"""Attempts of a trial: where each ran, how it ended, which rank failed first."""

from collections.abc import Sequence
from typing import NamedTuple

from determined.link.messages import ContainerExit
from determined_master.agents import repository as agent_rows
from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas.base import Time, Wire
from determined_master.db.models import AllocationRow, ContainerRow, LogPolicyMatchRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.experiments import repository as experiment_rows
from determined_master.logs import policy_match_repository
from determined_master.tasks.container_settings import by_device


class RankShown(Wire):
    rank: int
    host: str
    code: int | None
    signal: int | None
    cause: str
    last_lines: list[str]


class ContainerShown(Wire):
    container_id: str
    rank: int
    agent_id: str
    origin: str
    """What its agent runs in, such as ``Slurm job 550``; empty if that has no other name than the agent's."""
    host: str
    """Name of the agent's machine."""
    address: str
    slots: list[int]
    runtime: str
    """How its agent runs tasks: ``process``, ``docker`` or ``podman``; empty if the agent is unknown."""
    image: str
    """Image of the configuration for its type of slot; empty for the agent's default image and for a process."""
    state: str
    exit: str
    """``exited``, ``killed``, ``failed_to_start`` or ``system``; empty while it is live."""
    code: int | None
    signal: int | None
    ranks: list[RankShown]


class PolicyMatch(Wire):
    """The first line of an attempt that matched one of its log policies."""

    policy: str
    """The policy in words: its name, or its pattern."""
    pattern: str
    action: str | None
    sequel: str
    """What follows of the match; empty for a policy that only marks."""
    line: str
    time: Time


class Attempt(Wire):
    """``message``: why it is to end or how it ended; for a failure with rank, host, exit code and last lines."""

    run_id: int
    allocation_id: str
    state: str
    started_at: Time | None
    ended_at: Time | None
    reason: str
    code: int | None
    message: str
    failure: str | None
    """One sentence about the cause; None if it has not failed."""
    containers: list[ContainerShown]
    policies: list[PolicyMatch]


class Attempts(Wire):
    attempts: list[Attempt]


class _Place(NamedTuple):
    runtime: str
    image: str
    origin: str
    host: str


async def attempts_of(session: ReadSession, trial: TrialRow) -> list[Attempt]:
    """Returns the attempts, oldest first."""
    rows = await allocation_rows.of_task(session, trial.task_id)
    containers = await allocation_rows.containers_of_tasks(session, [trial.task_id])
    places = await _places(session, trial, containers)
    by_allocation: dict[str, list[ContainerShown]] = {}
    for row in sorted(containers, key=lambda each: each.rank):
        by_allocation.setdefault(row.allocation_id, []).append(_container(row, places[row.id]))
    matches: dict[str, list[PolicyMatch]] = {}
    for match in await policy_match_repository.matches_of(session, trial.task_id):
        matches.setdefault(match.allocation_id, []).append(_match(match))
    return [_attempt(row, by_allocation.get(row.id, []), matches.get(row.id, [])) for row in rows]


async def _places(session: ReadSession, trial: TrialRow, containers: Sequence[ContainerRow]) -> dict[str, _Place]:
    """Returns by container what it ran in, as its agent and the configuration say now."""
    config = (await experiment_rows.get(session, trial.experiment_id)).config
    images = by_device((config.get("environment") or {}).get("image"))
    agents = {row.agent_id for row in containers}
    known = {name: agent for name in agents if (agent := await agent_rows.find(session, name))}
    kinds = {(slot.agent_id, slot.slot_id): slot.type for slot in await agent_rows.slots(session, agent_ids=agents)}
    places = {}
    for row in containers:
        agent = known.get(row.agent_id)
        runtime = agent.container_runtime if agent else ""
        kind = kinds.get((row.agent_id, row.slot_ids[0]), "cpu") if row.slot_ids else "cpu"
        image = "" if runtime in ("", "process") else str(images.get(kind) or "")
        places[row.id] = _Place(runtime, image, agent.origin if agent else "", agent.hostname if agent else "")
    return places


def _match(row: LogPolicyMatchRow) -> PolicyMatch:
    policy = policy_match_repository.policy_of(row)
    return PolicyMatch(
        policy=policy.title,
        pattern=row.pattern,
        action=row.action,
        sequel=policy.sequel(row.agent_id),
        line=row.line,
        time=row.time,
    )


def _attempt(row: AllocationRow, containers: list[ContainerShown], policies: list[PolicyMatch]) -> Attempt:
    return Attempt(
        run_id=row.run_id,
        allocation_id=row.id,
        state=row.state.value,
        started_at=row.placed_at,
        ended_at=row.ended_at,
        reason=row.exit_reason.value if row.exit_reason else "",
        code=row.exit_code,
        message=row.message,
        failure=row.failure,
        containers=containers,
        policies=policies,
    )


def _container(row: ContainerRow, place: _Place) -> ContainerShown:
    ended = ContainerExit.model_validate(row.exit) if row.exit else None
    return ContainerShown(
        container_id=row.id,
        rank=row.rank,
        agent_id=row.agent_id,
        origin=place.origin,
        host=place.host,
        address=row.address,
        slots=row.slot_ids,
        runtime=place.runtime,
        image=place.image,
        state=row.state.value,
        exit=ended.kind if ended else "",
        code=ended.code if ended else None,
        signal=ended.signal if ended else None,
        ranks=[RankShown(**rank.model_dump(exclude={"time"})) for rank in (ended.ranks if ended else [])],
    )
