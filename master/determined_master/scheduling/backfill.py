"""Agents that are closed for requests because a better one waits for slots of theirs."""

from collections.abc import Collection
from typing import Any, NamedTuple

from determined_master.scheduling.request_queue import QueueLine, ShapeQueue
from determined_master.scheduling.scheduling_decision import SchedulingDecision
from determined_master.scheduling.shapes import Shape
from determined_master.scheduling.view import RequestView


class Bans(NamedTuple):
    """Agents on which a request may not ``start``, and those for whose slots it may not even ``wait``."""

    start: Collection[str]
    wait: Collection[str]


NONE = Bans((), ())


class StuckQueue(NamedTuple):
    """A shape that is passed over from the request with the order ``since`` on. ``agents``: those that it can use."""

    agents: frozenset[str]
    queue: ShapeQueue
    since: tuple[Any, ...]


class Backfill:
    """Belongs to one pass through the queue with slots, or through the one without. It stores what closes agents, and
    unites the sets only when somebody asks for them."""

    __slots__ = ("_decision", "_index", "_preempts", "_reserved", "_shut", "_stuck")

    def __init__(self, decision: SchedulingDecision, *, preempts: bool) -> None:
        self._decision = decision
        self._index = decision.room.index
        self._preempts = preempts
        self._reserved: list[frozenset[str]] = []
        """Agents that better requests can use which have a reservation."""
        self._stuck: list[StuckQueue] = []
        """Shapes with better requests which have none."""
        self._shut: frozenset[str] = frozenset()
        """Allocations leave for a better request but do not suffice: nobody takes their slots meanwhile."""

    def bans(self, request: RequestView) -> Bans:
        """Returns where a request may not go. Where the pool preempts, it fills up if those that wait could preempt it
        later: if it is preemptible and of a worse rank."""
        if not self._preempts or not request.preemptible:
            if not self._stuck and not self._reserved:
                return NONE
            stuck = _union([stuck.agents for stuck in self._stuck])
            return Bans(stuck | _union(self._reserved) if self._reserved else stuck, stuck)
        equals = [stuck.agents for stuck in self._stuck if self._holds_equal(stuck, request)]
        if equals:
            both = self._shut | _union(equals)
            return Bans(both, both)
        return Bans(self._shut, self._shut) if self._shut else NONE

    def _holds_equal(self, stuck: StuckQueue, request: RequestView) -> bool:
        """Returns whether a request of the same rank waits there that comes first."""
        queue, decision = stuck.queue, self._decision

        def waits(other: RequestView, line: QueueLine) -> bool:
            is_held = line.has_limit and decision.is_held(other, queue.shape.slots)
            return other.allocation_id not in decision.placed and not is_held

        return queue.has_between(max(stuck.since, request.rank), request.order, waits)

    def is_closed(self, banned: Collection[str], shape: Shape) -> bool:
        """Returns whether nothing of the shape can start, without a look at the agents."""
        if shape.is_pinned:
            return False
        return shape.slots > self._index.total or len(banned) >= len(self._index.count)

    def close_for_reserved(self, agents: frozenset[str]) -> None:
        """Closes agents for requests that cannot be preempted: a better one has slots reserved."""
        self._reserved.append(agents)

    def close(self, queue: ShapeQueue, agents: frozenset[str], request: RequestView) -> None:
        """Closes agents for requests that cannot be preempted by those that wait for slots of theirs, from this one on:
        neither those that are not preemptible, nor their equals."""
        self._stuck.append(StuckQueue(agents, queue, request.order))

    def shut(self, agents: frozenset[str]) -> None:
        """Closes agents for all."""
        self._shut |= agents


def _union(sets: list[frozenset[str]]) -> frozenset[str]:
    """Returns the union; equal sets are one object mostly, and are united once."""
    different = {id(agents): agents for agents in sets}
    union, *others = different.values() or [frozenset[str]()]
    return union.union(*others) if others else union
