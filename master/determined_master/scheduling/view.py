"""Frozen values from which the scheduler decides: agents, pending requests and running allocations of one pool."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from determined_master.scheduling.plan import Part, frozen

NO_LIMIT = 1 << 30
Condition = Literal["enabled", "disabled", "draining", "leaving", "disconnected"]
"""``leaving``: the agent ends by itself soon, so that nothing is placed on it."""


@dataclass(frozen=True)
class AgentView:
    """``free``: slots that may be assigned now; ``total``: all slots, enabled or not. ``placeable`` is False for an
    agent that is disabled, draining or within its reconnect window: it counts only for what the pool could ever
    hold."""

    id: str
    free: tuple[int, ...]
    total: int
    placeable: bool = True
    zero_slot_room: int = NO_LIMIT
    """Number of further containers without slots that it may run."""
    unusable: tuple[str, ...] = ()
    """Why its enabled slots that no task holds cannot be assigned, a sentence for each."""
    is_connected: bool = True
    disabled: tuple[int, ...] = ()
    """Slots that are disabled one by one, held or not. Slots of a disabled agent are not listed for that."""
    condition: Condition = "enabled"
    """Why it is not placeable."""
    leaves: str = ""
    """Of one that is leaving when and why, for people: ``at 12:30 UTC: time limit of Slurm job 550``."""

    @property
    def capacity(self) -> int:
        """Slots that are enabled and work, held or not. Slots that wait for somebody's action do not count."""
        return max(0, self.total - len(self.disabled) - len(self.unusable))


@dataclass(frozen=True)
class Constraints:
    """Where the tasks of a group may run."""

    single_agent: bool = False
    """True if a task must not be spread over several agents."""
    agent_id: str | None = None
    """The only agent that may run it, also while that agent is disabled."""
    excluded_agents: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TaskGroup:
    """``count`` equal tasks, each with ``slots`` slots. A task that is spread becomes one container on each agent."""

    role: str = "trial"
    count: int = 1
    slots: int = 0
    cpus: float | None = None
    """Cores for each task. Agents do not offer cores one by one, so this package ignores it."""
    memory: int | None = None
    """Bytes for each task; ignored like ``cpus``."""
    constraints: Constraints = field(default_factory=Constraints)
    entrypoint: str = ""

    @property
    def total_slots(self) -> int:
        return self.count * self.slots


@frozen
class RequestView:
    """A pending allocation. All groups are placed together or none."""

    allocation_id: str
    job_id: str
    groups: tuple[TaskGroup, ...]
    priority: int
    weight: float
    position: Any
    """Position of its job in the queue. Values of one pool can be compared with each other."""
    submitted_at: datetime
    user_id: int
    preemptible: bool
    max_slots: int | None = None
    """Limit of its job: the slots that all its allocations may hold at a time."""
    label: str = ""
    """What people call it, such as ``trial 3 of experiment 2``."""
    rank: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    """Smaller is better. Requests of one job are equal: none of them preempts another."""
    order: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    """Total order of the queue: rank, then age, then id."""

    def __post_init__(self) -> None:
        rank = (self.priority, self.position, -self.weight)
        object.__setattr__(self, "rank", rank)
        object.__setattr__(self, "order", (*rank, self.submitted_at, self.allocation_id))

    @property
    def name(self) -> str:
        return self.label or self.allocation_id

    @property
    def slots(self) -> int:
        return sum(group.total_slots for group in self.groups)

    def started(self, parts: tuple[Part, ...]) -> "RunningView":
        """Returns the allocation as it runs with these parts; names of arguments would take as long as the rest."""
        return RunningView(
            self.allocation_id,
            self.job_id,
            parts,
            self.priority,
            self.weight,
            self.position,
            self.user_id,
            self.preemptible,
            False,
            None,
            None,
            self.max_slots,
            None,
            self.label,
        )


@frozen
class RunningView:
    """An allocation that holds slots. ``leaving``: it was asked to leave (preempted or killed) already."""

    allocation_id: str
    job_id: str
    parts: tuple[Part, ...]
    priority: int
    weight: float
    position: Any
    user_id: int
    preemptible: bool
    leaving: bool = False
    seconds_to_save: float | None = None
    """Expected duration from the request to leave to the release of its slots; None if unknown."""
    seconds_left: float | None = None
    """Expected time until it ends by itself; None if unknown."""
    max_slots: int | None = None
    leaving_for: str | None = None
    """Allocation for which it was released, if it was: no second release is requested for that one meanwhile."""
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.allocation_id

    @property
    def slots(self) -> int:
        parts = self.parts
        return len(parts[0].slots) if len(parts) == 1 else sum([len(part.slots) for part in parts])

    @property
    def rank(self) -> tuple[Any, ...]:
        return (self.priority, self.position, -self.weight)

    @property
    def key(self) -> tuple[Any, ...]:
        """Total order of running allocations: rank, then id."""
        return (self.priority, self.position, -self.weight, self.allocation_id)

    def asked_to_leave(self, for_allocation_id: str | None) -> "RunningView":
        """Returns the same allocation, leaving; ``replace`` would take several times as long."""
        return RunningView(
            self.allocation_id,
            self.job_id,
            self.parts,
            self.priority,
            self.weight,
            self.position,
            self.user_id,
            self.preemptible,
            True,
            self.seconds_to_save,
            self.seconds_left,
            self.max_slots,
            for_allocation_id,
            self.label,
        )


@dataclass(frozen=True)
class Launches:
    """What the provider of a pool is doing, for reasons in words."""

    max_agents: int = 0
    """The most agents that may exist at a time."""
    existing: int = 0
    """Those that exist; they may be starting or ending."""
    starting: int = 0
    starting_since: datetime | None = None
    """When the start of the first of them was ordered."""
    waiting: str = ""
    """Why the first of them waits in a queue outside the cluster, if it does."""
    start_estimate: datetime | None = None
    """When it will probably start."""
    failures: int = 0
    """Launches that failed since the last agent registered."""
    failure: str = ""
    """Why the last of them failed."""
    stuck: str = ""
    """Why an agent cannot be ended, if one cannot."""


@dataclass(frozen=True)
class ProviderShape:
    """Agents that a provider could still add to the pool."""

    slots_per_agent: int
    max_agents: int
    launches: Launches = Launches()


@dataclass(frozen=True)
class SchedulerView:
    """Settings of the pool's scheduler. ``fair_share`` always preempts."""

    kind: Literal["priority", "fair_share"] = "priority"
    preemption: bool = False
    fitting: Literal["best", "worst"] = "best"
    max_slots_per_user: int | None = None
    provider_can_add: ProviderShape | None = None

    @property
    def preempts(self) -> bool:
        return self.preemption or self.kind == "fair_share"


@dataclass(frozen=True)
class PoolView:
    name: str
    agents: tuple[AgentView, ...]
    waiting: tuple[RequestView, ...]
    running: tuple[RunningView, ...] = ()
    scheduler: SchedulerView = field(default_factory=SchedulerView)

    def jobs(self) -> Iterator[str]:
        yield from dict.fromkeys([*(r.job_id for r in self.running), *(r.job_id for r in self.waiting)])
