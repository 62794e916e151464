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


class Lane:
    """Belongs to one pass through the queue with slots, or through the one without."""

    def __init__(self, index: AgentIndex, *, preempts: bool) -> None:
        self._index = index
        self._preempts = preempts
        self._closed: set[str] = set()
        """A better request waits, with or without a reservation."""
        self._stuck: set[str] = set()
        """A better request waits that has no reservation."""
        self._shut: set[str] = set()
        """Allocations leave for a better request but do not suffice: nobody takes their slots meanwhile."""
        self._equal: set[str] = set()
        self._rank: object = None

    def bans(self, request: RequestView) -> Bans:
        """Returns where a request may not go. Where the pool preempts, it fills up if those that wait could preempt it
        later: if it is preemptible and of a worse rank."""
        if not self._preempts or not request.preemptible:
            return Bans(self._closed, self._stuck)
        if self._equal and request.rank == self._rank:
            both = self._shut | self._equal
            return Bans(both, both)
        return Bans(self._shut, self._shut)

    def is_closed(self, banned: Collection[str], shape: Shape) -> bool:
        """Returns whether nothing of the shape can start, without a look at the agents."""
        return len(banned) >= len(self._index.count) > 0 and not shape.is_pinned

    def close_for_reserved(self, agents: Collection[str]) -> None:
        """Closes agents for requests that cannot be preempted: a better one has slots reserved."""
        self._closed.update(agents)

    def close(self, agents: Collection[str], rank: object) -> None:
        """Closes agents for requests that cannot be preempted by the one of this rank, which waits for slots of
        theirs: neither those that are not preemptible, nor its equals."""
        self._closed.update(agents)
        self._stuck.update(agents)
        if rank != self._rank:
            self._rank, self._equal = rank, set()
        self._equal.update(agents)

    def shut(self, agents: Collection[str]) -> None:
        """Closes agents for all."""
        self._shut.update(agents)
