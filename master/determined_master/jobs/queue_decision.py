"""Decides on changes of the job queue: order, priority, weight and pool. Pure: a queue may be very long, so this runs
in a thread, before the transaction that stores the decision."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from determined.errors import ApiError, BadRequest
from determined_master.db.models import JobRow
from determined_master.db.models.base import from_micros, to_micros
from determined_master.jobs.queue_order import QueuedJob, QueueOrder, check_passed, check_priority
from determined_master.jobs.repository import check_range
from determined_master.settings.pool_settings import unknown


@dataclass(frozen=True)
class QueueChange:
    """What is to change of one job. None and empty texts leave it as it is."""

    job_id: str
    ahead_of: str = ""
    behind_of: str = ""
    priority: int | None = None
    weight: float | None = None
    pool: str = ""


@dataclass(frozen=True)
class JobChange:
    """What has changed of one job, or would change."""

    job_id: str
    fields: tuple[str, ...]
    passed: tuple[str, ...] = ()
    """Jobs that were ahead of it and are behind it now."""


class Place(NamedTuple):
    """A job as it was read. ``position`` is in microseconds."""

    pool: str
    priority: int
    position: int

    @classmethod
    def of(cls, row: JobRow) -> "Place":
        return cls(row.pool, row.priority, to_micros(row.position))


@dataclass(frozen=True)
class QueueRules:
    """``default_priority`` is that of a pool, ``pools`` are those of the settings. ``is_admin``: may improve places."""

    default_priority: Callable[[str], int]
    pools: Sequence[str]
    is_admin: bool


@dataclass
class QueueDecision:
    """What is to be stored."""

    done: list[JobChange] = field(default_factory=list)
    problems: list[ApiError] = field(default_factory=list)
    values: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    """New columns by job, also of jobs that make room for others."""
    read: dict[str, Place] = field(default_factory=dict)
    """The jobs on which it depends, as they were read."""

    def resources(self, job_id: str) -> dict[str, Any]:
        """Returns what changes in the section ``resources`` of the configuration of a job's experiment."""
        values = self.values.get(job_id, {})
        names = {"priority": "priority", "pool": "resource_pool"}
        return {to: values[name] for name, to in names.items() if name in values}


def decide(
    changes: Sequence[QueueChange],
    refused: Mapping[int, ApiError],
    places: Mapping[str, Place],
    owners: Mapping[str, int],
    queues: Mapping[str, Sequence[QueuedJob]],
    rules: QueueRules,
) -> QueueDecision:
    """Decides on all changes in their order. ``refused``: the errors of those that are refused already, by index."""
    deciding = _Deciding(places, owners, queues, rules)
    for index, change in enumerate(changes):
        try:
            if index in refused:
                raise refused[index]
            deciding.apply(change)
        except ApiError as error:
            deciding.decision.problems.append(error)
    return deciding.decision


class _Deciding:
    def __init__(
        self,
        places: Mapping[str, Place],
        owners: Mapping[str, int],
        queues: Mapping[str, Sequence[QueuedJob]],
        rules: QueueRules,
    ) -> None:
        self.decision = QueueDecision()
        self._read = {
            each.job_id: Place(pool, each.priority, each.position) for pool, queue in queues.items() for each in queue
        } | dict(places)
        self._places = dict(places)
        self._owners = owners
        self._queues = {pool: QueueOrder(queue) for pool, queue in queues.items()}
        self._rules = rules

    def apply(self, change: QueueChange) -> None:
        name = change.job_id
        fields: list[str] = []
        passed: tuple[str, ...] = ()
        self.decision.read[name] = self._read[name]
        if change.ahead_of and change.behind_of:
            raise BadRequest("give ahead_of or behind_of, not both")
        if change.pool and change.pool != self._places[name].pool:
            if change.pool not in self._rules.pools:
                raise BadRequest("; ".join(unknown(change.pool, self._rules.pools)))
            self._places[name] = self._places[name]._replace(pool=change.pool)
            self.decision.values[name]["pool"] = change.pool
            fields.append("pool")
        if change.weight is not None:
            if not math.isfinite(change.weight) or change.weight <= 0:
                raise BadRequest("a weight must be greater than 0")
            self.decision.values[name]["weight"] = change.weight
            fields.append("weight")
        if change.priority is not None:
            self._to_priority(name, change.priority)
            fields.append("priority")
        if change.ahead_of or change.behind_of:
            passed = self._past(name, change.ahead_of or change.behind_of, is_ahead=bool(change.ahead_of))
            fields.append("position")
        self.decision.done.append(JobChange(name, tuple(fields), passed))

    def _to_priority(self, name: str, priority: int) -> None:
        place = self._places[name]
        check_range(priority)
        default = self._rules.default_priority(place.pool)
        check_priority(new=priority, old=place.priority, default=default, is_admin=self._rules.is_admin)
        self._places[name] = place._replace(priority=priority)
        self.decision.values[name]["priority"] = priority
        if place.pool in self._queues:
            self._queues[place.pool].set_priority(name, priority)

    def _past(self, name: str, anchor: str, *, is_ahead: bool) -> tuple[str, ...]:
        pool = self._places[name].pool
        queue = self._queues[pool]
        if name not in queue and any(name in each for each in self._queues.values()):
            raise BadRequest(
                f"job {name} is not in the queue of the pool {pool} before it has moved there; "
                "change its pool first, and then its place"
            )
        if name not in queue:
            raise BadRequest(f"job {name} neither waits nor runs, so it has no place in the queue")
        moved = queue.move(name, anchor=anchor, is_ahead=is_ahead)
        check_passed(moved, self._owners[name], is_admin=self._rules.is_admin)
        if moved.priority != self._places[name].priority:
            self._to_priority(name, moved.priority)
        self.decision.read[anchor] = self._read[anchor]
        for each, position in moved.positions.items():
            self.decision.read[each] = self._read[each]
            self.decision.values[each]["position"] = from_micros(position)
        return tuple(each.job_id for each in moved.passed)
