"""Agents that are closed for requests because a better one waits for slots of theirs."""

from collections.abc import Collection
from typing import NamedTuple

from determined_master.scheduling.agent_index import AgentIndex
from determined_master.scheduling.shapes import Shape
from determined_master.scheduling.view import RequestView


class Bans(NamedTuple):
    """Agents on which a request may not ``start``, and those for whose slots it may not even ``wait``."""

    start: Collection[str]
    wait: Collection[str]


NONE = Bans((), ())


class Backfill:
    """Belongs to one pass through the queue with slots, or through the one without. It stores what closes agents, and
    unites the sets only when somebody asks for them."""

    __slots__ = ("_equals", "_index", "_preempts", "_rank", "_reserved", "_shut", "_stuck")

    def __init__(self, index: AgentIndex, *, preempts: bool) -> None:
        self._index = index
        self._preempts = preempts
        self._reserved: list[frozenset[str]] = []
        """Agents that better requests can use which have a reservation."""
        self._stuck: list[frozenset[str]] = []
        """Agents that better requests can use which have none."""
        self._shut: frozenset[str] = frozenset()
        """Allocations leave for a better request but do not suffice: nobody takes their slots meanwhile."""
        self._rank: object = None
        self._equals = 0
        """Number of the last ones of ``_stuck`` that have the rank ``_rank``."""

    def bans(self, request: RequestView) -> Bans:
        """Returns where a request may not go. Where the pool preempts, it fills up if those that wait could preempt it
        later: if it is preemptible and of a worse rank."""
        if not self._preempts or not request.preemptible:
            if not self._stuck and not self._reserved:
                return NONE
            stuck = _union(self._stuck)
            return Bans(stuck | _union(self._reserved) if self._reserved else stuck, stuck)
        if self._equals and request.rank == self._rank:
            both = self._shut | _union(self._stuck[-self._equals :])
            return Bans(both, both)
        return Bans(self._shut, self._shut) if self._shut else NONE

    def is_closed(self, banned: Collection[str], shape: Shape) -> bool:
        """Returns whether nothing of the shape can start, without a look at the agents."""
        if shape.is_pinned:
            return False
        return shape.slots > self._index.total or len(banned) >= len(self._index.count)

    def close_for_reserved(self, agents: frozenset[str]) -> None:
        """Closes agents for requests that cannot be preempted: a better one has slots reserved."""
        self._reserved.append(agents)

    def close(self, agents: frozenset[str], rank: object) -> None:
        """Closes agents for requests that cannot be preempted by the one of this rank, which waits for slots of
        theirs: neither those that are not preemptible, nor its equals."""
        self._equals = self._equals + 1 if rank == self._rank else 1
        self._rank = rank
        self._stuck.append(agents)

    def shut(self, agents: frozenset[str]) -> None:
        """Closes agents for all."""
        self._shut |= agents


def _union(sets: list[frozenset[str]]) -> frozenset[str]:
    """Returns the union; equal sets are one object mostly, and are united once."""
    different = {id(agents): agents for agents in sets}
    union, *others = different.values() or [frozenset[str]()]
    return union.union(*others) if others else union
