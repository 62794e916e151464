"""Overview of the cluster: holders of slots, the queue with reasons, past allocations and usage."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from determined.errors import BadRequest
from determined.states import AllocationState, InstanceState, TaskKind
from determined_master.agents import clock_skew
from determined_master.agents import repository as agent_rows
from determined_master.allocations import agent_containers_repository
from determined_master.allocations import repository as allocation_rows
from determined_master.api.dependencies import Anyone, ClockDep, Read, SettingsDep, StreamsDep
from determined_master.api.schemas.base import Moment, Time, Wire, answered, utc
from determined_master.cluster.usage import busy_seconds, starts
from determined_master.commands.idle import Service, idle_since
from determined_master.commands.kinds import SERVICES
from determined_master.db.models import AgentSlotRow, AllocationRow, InstanceRow
from determined_master.db.session import ReadSession
from determined_master.providers import repository as instances
from determined_master.providers.instances import agents_of_row
from determined_master.proxy import task_queries
from determined_master.proxy.declared_ports import pages
from determined_master.settings.pool_settings import PoolSettings
from determined_master.streams.broker import StreamBroker
from determined_master.tasks import repository as tasks
from determined_master.trials import repository as trial_rows
from determined_master.users import pool_account

router = APIRouter(prefix="/detent/cluster", tags=["detent"])

QueueState = Literal["STATE_QUEUED", "STATE_PULLING", "STATE_STARTING", "STATE_RUNNING", "STATE_STOPPING"]


class Holder(Wire):
    """What an allocation belongs to: a trial, with the name of its experiment, or another task with its own name."""

    task_id: str
    kind: TaskKind
    trial_id: int | None
    experiment_id: int | None
    name: str


class SlotHolder(Holder):
    allocation_id: str
    rank: int
    since: Time


class OverviewSlot(Wire):
    """``status``: ``free``, ``occupied`` or ``unhealthy`` as its agent sees it, with the ``reason`` in a sentence."""

    id: int
    type: str
    brand: str
    enabled: bool
    draining: bool
    status: str
    reason: str
    held: SlotHolder | None


class OverviewAgent(Wire):
    id: str
    pool: str
    hostname: str
    version: str
    connected: bool
    enabled: bool
    draining: bool
    warning: str
    """Sentence about a clock that differs from the master's; empty if there is nothing to warn about."""
    origin: str
    """What it runs in, such as ``Slurm job 550``; empty if it has no other name than its id."""
    leaving: bool
    """True if nothing new is placed on it, because it ends by itself soon."""
    leaves_at: Time | None
    leaves_why: str
    slots: list[OverviewSlot]


class OverviewPool(Wire):
    """A resource pool. ``provider``: what starts and ends its agents (``command``, ``local`` or ``slurm``); empty if
    only people do. ``starting`` and ``ending``: agents of the provider that have not registered yet or are being ended.
    ``problem``: why its last launch failed or an agent cannot be ended; empty if neither is so. ``waiting``: why the
    first agent that starts waits in a queue outside the cluster, and ``start_estimate`` until when. ``account``: the
    one that is charged for its work; empty if that is nobody's."""

    name: str
    account: str
    provider: str
    min_agents: int
    max_agents: int
    starting: int
    running: int
    ending: int
    problem: str
    waiting: str
    start_estimate: Time | None


class QueueEntry(Holder):
    """``waiting``: the reason for waiting; empty once it is placed. ``since``: when it requested slots. ``agents``:
    where its containers are; empty while it waits. ``ports``: of the pages that it declares, once it is placed.
    ``idle_since``: since when nobody is connected to a shell; null
    while somebody is, while it is not ready, and for other kinds."""

    allocation_id: str
    agents: list[str]
    job_id: str
    pool: str
    username: str
    user_id: int
    slots: int
    priority: int
    since: Time
    waiting: str
    state: QueueState
    ports: list[int]
    idle_since: Time | None


class ClusterOverview(Wire):
    """``queue``: pending allocations in scheduling order, then those that hold slots."""

    now: Time
    pools: list[OverviewPool]
    agents: list[OverviewAgent]
    queue: list[QueueEntry]


class SlotHold(Holder):
    agent_id: str
    slot_id: int
    from_: Annotated[Time, Field(alias="from")]
    to: Time | None
    exit_reason: str | None


class SlotHolds(Wire):
    now: Time
    holds: list[SlotHold]


class UsageBucket(Wire):
    start: Time
    busy_slot_seconds: float
    seconds: float


class SlotUsage(Wire):
    """``slots``: current number of slots."""

    from_: Annotated[Time, Field(alias="from")]
    to: Time
    slots: int
    buckets: list[UsageBucket]


From = Annotated[Moment | None, Query(alias="from")]
To = Annotated[Moment | None, Query(alias="to")]
MAX_QUEUED = 1000
MAX_HOLDS = 3000
DISPLAYED_PERIOD = timedelta(days=1)
MAX_USAGE_PERIOD = timedelta(days=366)
"""The use of slots is summed up over all holds of the period, of which a year may have very many."""
_STATES: dict[AllocationState, QueueState] = {
    AllocationState.PENDING: "STATE_QUEUED",
    AllocationState.PULLING: "STATE_PULLING",
    AllocationState.RUNNING: "STATE_RUNNING",
    AllocationState.TERMINATING: "STATE_STOPPING",
}


@router.get("/overview")
async def get_cluster_overview(
    _principal: Anyone, session: Read, clock: ClockDep, settings: SettingsDep, streams: StreamsDep
) -> ClusterOverview:
    live = await allocation_rows.live_without_spec(session, MAX_QUEUED)
    holders = await _holders(session)
    slots: dict[str, list[OverviewSlot]] = defaultdict(list)
    for slot in await agent_rows.slots(session):
        slots[slot.agent_id].append(_slot(slot, holders.get((slot.agent_id, slot.slot_id))))
    agents = [
        OverviewAgent(
            id=row.id,
            pool=row.pool,
            hostname=row.hostname,
            version=row.version,
            connected=row.disconnected_at is None,
            enabled=row.enabled,
            draining=row.draining,
            warning=clock_skew.warning(row.id, row.clock_skew),
            origin=row.origin,
            leaving=row.leaving,
            leaves_at=row.leaves_at,
            leaves_why=row.leaves_why,
            slots=slots[row.id],
        )
        for row in await agent_rows.present(session)
    ]
    names = await _named(session, {row.task_id for row in live})
    jobs = await tasks.jobs_of(session, names.keys())
    places = await agent_containers_repository.agents_of_live(session)
    idle = await _idle(session, streams, clock.now())
    ports = await task_queries.declared_by(session, {row.task_id for row in live if row.id in places})
    waiting_first = sorted(live, key=lambda row: row.state is not AllocationState.PENDING)
    queue = [
        _entry(
            row,
            names[row.task_id],
            jobs[row.task_id],
            places.get(row.id, []),
            pages(ports.get(row.task_id, [])),
            idle.get(row.task_id),
        )
        for row in waiting_first
        if row.task_id in names
    ]
    pools = [await _pool(session, each) for each in settings.pools.values()]
    return ClusterOverview(now=clock.now(), pools=pools, agents=agents, queue=queue)


@router.get("/holds", response_model=SlotHolds)
async def list_slot_holds(
    _principal: Anyone, session: Read, clock: ClockDep, start: From = None, end: To = None
) -> Response:
    """Returns assignments of slots in a period, by default the last day; only the newest if there are very many."""
    now = clock.now()
    assignments = await allocation_rows.holds_between(session, *_between(start, end, now), MAX_HOLDS)
    names = await _named(session, {each.task_id for each in assignments})
    holds = [
        SlotHold(
            agent_id=each.agent_id,
            slot_id=each.slot_id,
            **names[each.task_id],
            from_=each.held_at,
            to=each.released_at,
            exit_reason=each.exit_reason.value if each.exit_reason else None,
        )
        for each in reversed(assignments)
        if each.task_id in names
    ]
    return answered(SlotHolds(now=now, holds=holds))


@router.get("/usage")
async def get_slot_usage(
    _principal: Anyone,
    session: Read,
    clock: ClockDep,
    start: From = None,
    end: To = None,
    buckets: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> SlotUsage:
    """Ignores the future part of the period: the current bucket has the seconds until now, later ones have none."""
    now = clock.now()
    first, last = _between(start, end, now)
    if last - first > MAX_USAGE_PERIOD:
        raise BadRequest(f"from must be at most {MAX_USAGE_PERIOD.days} days before to")
    busy = busy_seconds(await allocation_rows.held_spans(session, first, last, now), first, last, buckets)
    present = {row.id for row in await agent_rows.present(session)}
    length = (last - first) / buckets
    return SlotUsage(
        from_=first,
        to=last,
        slots=sum(slot.agent_id in present for slot in await agent_rows.slots(session)),
        buckets=[
            UsageBucket(
                start=at, busy_slot_seconds=each, seconds=max(0.0, (min(at + length, now) - at).total_seconds())
            )
            for at, each in zip(starts(first, last, buckets), busy, strict=True)
        ],
    )


async def _pool(session: ReadSession, pool: PoolSettings) -> OverviewPool:
    provider = pool.provider
    rows = await instances.live(session, pool.pool_name)
    failed = await instances.failures(session, pool.pool_name) if provider else instances.Failures()
    stuck = next((row.end_failure for row in rows if row.end_failure), "")
    first = next((row for row in rows if row.state is InstanceState.STARTING and row.waiting), None)
    return OverviewPool(
        name=pool.pool_name,
        account=pool_account.payer(pool),
        provider=provider.type if provider else "",
        min_agents=provider.min_agents if provider else 0,
        max_agents=provider.max_agents if provider else 0,
        starting=_agents(rows, InstanceState.STARTING),
        running=_agents(rows, InstanceState.RUNNING),
        ending=_agents(rows, InstanceState.ENDING),
        problem=stuck or failed.last,
        waiting=first.waiting if first else "",
        start_estimate=first.start_estimate if first else None,
    )


def _agents(rows: Sequence[InstanceRow], state: InstanceState) -> int:
    return sum(len(agents_of_row(row)) for row in rows if row.state is state)


async def _named(session: ReadSession, task_ids: set[str]) -> dict[str, dict[str, Any]]:
    """Returns the fields of ``Holder`` by task."""
    names: dict[str, dict[str, Any]] = {
        task_id: {
            "task_id": task_id,
            "kind": TaskKind.TRIAL,
            "trial_id": trial.trial_id,
            "experiment_id": trial.experiment_id,
            "name": trial.experiment_name,
        }
        for task_id, trial in (await trial_rows.names_of_tasks(session, task_ids)).items()
    }
    for task_id, task in (await tasks.names(session, task_ids - names.keys())).items():
        names[task_id] = {
            "task_id": task_id,
            "kind": task.kind,
            "trial_id": None,
            "experiment_id": None,
            "name": task.description,
        }
    return names


async def _holders(session: ReadSession) -> dict[tuple[str, int], SlotHolder]:
    """Returns the current holders by agent and slot."""
    held = await allocation_rows.live_holds(session)
    task = {hold.allocation_id: hold.allocation_id.rpartition(".")[0] for hold, _ in held}
    names = await _named(session, set(task.values()))
    return {
        (hold.agent_id, hold.slot_id): SlotHolder(
            allocation_id=hold.allocation_id,
            **names[task[hold.allocation_id]],
            rank=container.rank,
            since=hold.held_at,
        )
        for hold, container in held
        if task[hold.allocation_id] in names
    }


def _slot(row: AgentSlotRow, held: SlotHolder | None) -> OverviewSlot:
    return OverviewSlot(
        id=row.slot_id,
        type=row.type,
        brand=row.brand,
        enabled=row.enabled,
        draining=row.draining,
        status=row.status,
        reason=row.status_reason,
        held=held,
    )


async def _idle(session: ReadSession, streams: StreamBroker, now: datetime) -> dict[str, datetime | None]:
    """Returns since when nobody uses each service."""
    return {
        each.task_id: idle_since(Service(each.ready_at, each.last_used_at), streams.uses.of(each.task_id), now)
        for each in await tasks.ready(session, SERVICES)
    }


def _entry(
    row: AllocationRow,
    named: dict[str, Any],
    job_id: str,
    agents: list[str],
    ports: list[int],
    idle: datetime | None,
) -> QueueEntry:
    is_leaving = row.preempt_requested_at is not None
    return QueueEntry(
        allocation_id=row.id,
        **named,
        job_id=job_id,
        agents=agents,
        pool=row.pool,
        username=row.owner,
        user_id=row.user_id,
        slots=row.slots,
        priority=row.priority,
        since=row.created_at,
        waiting=row.waiting,
        state="STATE_STOPPING" if is_leaving else _STATES.get(row.state, "STATE_STARTING"),
        ports=ports,
        idle_since=idle,
    )


def _between(start: datetime | None, end: datetime | None, now: datetime) -> tuple[datetime, datetime]:
    last = utc(end) or now
    first = utc(start) or last - DISPLAYED_PERIOD
    if first >= last:
        raise BadRequest("from must be before to")
    return first, last
