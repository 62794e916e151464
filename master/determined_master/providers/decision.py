"""Decides which agents of a pool a provider starts and ends. Pure: a frozen view in, a decision out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from determined.states import InstanceState
from determined_master.providers.provider import agents_of
from determined_master.scheduling.scheduler import Scheduler
from determined_master.scheduling.view import NO_LIMIT, AgentView, PoolView

_STARTING, _NEW = "\x7f0-starting-", "\x7f1-new-"
"""Begin the ids of agents that do not exist yet. They sort behind all others, so that real agents are used first."""


@dataclass(frozen=True)
class Limits:
    """The settings of the provider that a decision needs. Times in seconds."""

    min_agents: int = 0
    max_agents: int = 0
    slots_per_agent: int = 1
    nodes: int = 1
    """Number of agents that start and end together."""
    zero_slot_room: int = NO_LIMIT
    """Number of containers without slots that each agent may run."""
    idle_timeout: float = 0.0
    start_timeout: float = 0.0


@dataclass(frozen=True)
class InstanceView:
    """An instance that has not ended. ``starting_seconds``: time since its start was ordered."""

    agent_id: str
    state: InstanceState
    starting_seconds: float = 0.0
    idle_seconds: float | None = None
    """Time for which its agents have held no container; None if one holds one, or is not connected."""
    nodes: int = 1
    """Number of its agents."""
    is_queued: bool = False
    """True if it waits in a queue outside the cluster, so that its time to register has not begun."""
    is_leaving: bool = False
    """True if it ends by itself soon, so that nothing is placed on it any more."""


@dataclass(frozen=True)
class ProviderView:
    """One pool. ``failures``: launches that failed since the last agent registered."""

    limits: Limits
    pool: PoolView
    instances: tuple[InstanceView, ...] = ()
    failures: int = 0
    seconds_to_retry: float = 0.0
    """Rest of the back-off after the last failed launch."""


@dataclass(frozen=True)
class Decision:
    """``releases``: idle agents to end; ``given_up``: agents that did not register in time, to end too; ``withdrawn``:
    agents that wait in a queue outside the cluster, and that nothing needs any more."""

    launches: int = 0
    releases: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    wait_seconds: float | None = None
    """Time until the decision may change although nothing else does; None if it will not."""


@dataclass(frozen=True)
class Need:
    """What the queue would use if agents could be added now. ``agents``: ids of those that have registered;
    ``starting`` and ``new``: numbers of instances that start, and that are to be added."""

    agents: frozenset[str] = frozenset()
    starting: int = 0
    new: int = 0


def decide(view: ProviderView) -> Decision:
    """Returns the agents to start and to end. All that exist stay within the maximum, those that end included; no agent
    with a container is ended, and none below the minimum."""
    limits = view.limits
    starting = [each for each in view.instances if each.state is InstanceState.STARTING]
    late = [each for each in starting if each.starting_seconds >= limits.start_timeout]
    on_time = [each for each in starting if each.starting_seconds < limits.start_timeout]
    running = [each for each in view.instances if each.state is InstanceState.RUNNING]
    staying = [each for each in running if not each.is_leaving]
    room = max(0, limits.max_agents // limits.nodes - len(view.instances))
    need = needed(view.pool, limits, len(on_time), room)
    missing = -(-limits.min_agents // limits.nodes) - len(staying) - len(on_time)
    launches = min(room, max(need.new, missing, 0))
    waits = [limits.start_timeout - each.starting_seconds for each in on_time if not each.is_queued]
    if view.failures and launches:
        # One at a time, until one has registered: what failed will probably fail again.
        waits += [view.seconds_to_retry] if view.seconds_to_retry > 0 else []
        launches = 0 if view.seconds_to_retry > 0 or on_time else 1
    withdrawn = _withdrawn(on_time, need, spare=-missing)
    releases, idle_waits = _releases(limits, staying, need, spare=-missing - len(withdrawn))
    # A new agent may take the place of one that leaves.
    releases += tuple(each.agent_id for each in running if each.is_leaving and each.idle_seconds is not None)
    given_up = tuple(each.agent_id for each in late)
    return Decision(launches, releases, given_up, withdrawn, min(waits + idle_waits, default=None))


def needed(pool: PoolView, limits: Limits, starting: int, room: int) -> Need:
    """Asks the scheduler of the pool what it would place if the agents that start were there, and as few new ones as
    let it place as much as with ``room`` new ones."""
    if not pool.waiting:
        return Need()
    most = _placed_on(pool, limits, starting, room)
    low, high = 0, most.need.new
    while low < high:
        middle = (low + high) // 2
        if len(_placed_on(pool, limits, starting, middle).requests) >= len(most.requests):
            high = middle
        else:
            low = middle + 1
    return _placed_on(pool, limits, starting, low).need


@dataclass(frozen=True)
class _Placements:
    requests: frozenset[str]
    need: Need


def _placed_on(pool: PoolView, limits: Limits, starting: int, new: int) -> _Placements:
    """Preemption is left out: an agent that is added is better than work that has to leave."""
    slots = tuple(range(limits.slots_per_agent))
    instances = [f"{_STARTING}{n:06}" for n in range(starting)] + [f"{_NEW}{n:06}" for n in range(new)]
    names = [f"{name}-{node}" for name in instances for node in range(limits.nodes)]
    added = tuple(AgentView(name, slots, len(slots), zero_slot_room=limits.zero_slot_room) for name in names)
    scheduler = replace(pool.scheduler, preemption=False, fitting="best", provider_can_add=None)
    placements = Scheduler.of(replace(pool, agents=(*pool.agents, *added), scheduler=scheduler)).steps().placements
    used = {part.agent_id for placement in placements for part in placement.parts}
    added_used = {name.rpartition("-")[0] for name in used.intersection(names)}
    need = Need(
        frozenset(used.difference(names)),
        sum(name.startswith(_STARTING) for name in added_used),
        sum(name.startswith(_NEW) for name in added_used),
    )
    return _Placements(frozenset(placement.allocation_id for placement in placements), need)


def _withdrawn(starting: Sequence[InstanceView], need: Need, *, spare: int) -> tuple[str, ...]:
    """Returns the instances that wait outside the cluster and that nothing needs, the newest ones."""
    queued = [each.agent_id for each in starting if each.is_queued]
    surplus = max(0, min(len(starting) - need.starting, spare, len(queued)))
    return tuple(queued[len(queued) - surplus :])


def _releases(
    limits: Limits, running: Sequence[InstanceView], need: Need, *, spare: int
) -> tuple[tuple[str, ...], list[float]]:
    """Returns the agents to end, those first that have been idle for longest, and when the next one may be due."""
    idle = [
        (each.idle_seconds, each.agent_id)
        for each in running
        if each.idle_seconds is not None and need.agents.isdisjoint(agents_of(each.agent_id, each.nodes))
    ]
    idle = sorted(idle, key=lambda pair: (-pair[0], pair[1]))[: max(0, spare)]
    due = tuple(agent_id for seconds, agent_id in idle if seconds >= limits.idle_timeout)
    return due, [limits.idle_timeout - seconds for seconds, _ in idle if seconds < limits.idle_timeout]
