"""Agents by a count of slots (free now, free soon, or all), so that the one to choose is found without a scan."""

from bisect import bisect_left, insort
from collections.abc import Collection
from typing import Literal


class AgentIndex:
    """``count``: slots of every connected agent. ``placeable``: agents that a request may get unless it names one."""

    __slots__ = ("_buckets", "_sizes", "count", "placeable", "size", "total")

    def __init__(self) -> None:
        self.count: dict[str, int] = {}
        self.size: dict[str, int] = {}
        self.placeable: set[str] = set()
        self.total = 0
        """Slots of placeable agents."""
        self._buckets: list[list[str]] = []
        """Ids of placeable agents in order, by their count; those with 0 are left out."""
        self._sizes: dict[int, int] = {}

    def copy(self) -> "AgentIndex":
        """Returns an index of the same agents, whose counts change apart from these."""
        other = AgentIndex()
        other.count = self.count.copy()
        other.size, other.placeable, other._sizes = self.size, self.placeable, self._sizes
        other.total = self.total
        other._buckets = [bucket.copy() for bucket in self._buckets]
        return other

    def add(self, agent_id: str, count: int, size: int, *, placeable: bool = True) -> None:
        self.count[agent_id] = 0
        self.size[agent_id] = size
        if placeable:
            self.placeable.add(agent_id)
            self._sizes[size] = self._sizes.get(size, 0) + 1
        self.change(agent_id, count)

    def discard(self, agent_id: str) -> None:
        if agent_id not in self.count:
            return
        self.change(agent_id, -self.count[agent_id])
        if agent_id in self.placeable:
            self.placeable.discard(agent_id)
            size = self.size[agent_id]
            self._sizes[size] -= 1
            if not self._sizes[size]:
                del self._sizes[size]
        del self.count[agent_id], self.size[agent_id]

    def change(self, agent_id: str, by: int) -> None:
        counts = self.count
        before = counts[agent_id]
        after = counts[agent_id] = before + by
        if agent_id not in self.placeable:
            return
        self.total += by
        buckets = self._buckets
        if before > 0:
            bucket = buckets[before]
            del bucket[bisect_left(bucket, agent_id)]
        if after > 0:
            while len(buckets) <= after:
                buckets.append([])
            insort(buckets[after], agent_id)

    def choose(self, slots: int, banned: Collection[str], fitting: Literal["best", "worst"]) -> str | None:
        """Returns the agent with room for ``slots`` that is left fullest (best) or emptiest (worst, in relation to its
        size); the smaller id among equals."""
        buckets = self._buckets
        if fitting == "best" and not banned:
            for bucket in buckets[slots : self.total + 1]:
                if bucket:
                    return bucket[0]
            return None
        if fitting == "best" or len(self._sizes) == 1:
            places = range(slots, len(buckets)) if fitting == "best" else range(len(buckets) - 1, slots - 1, -1)
            for place in places:
                for agent_id in buckets[place]:
                    if agent_id not in banned:
                        return agent_id
            return None
        fitting_agents = (a for a in self.placeable if self.count[a] >= slots and a not in banned)
        return min(fitting_agents, key=lambda a: (-self.count[a] / self.size[a], a), default=None)

    def choose_several(self, slots: int, banned: Collection[str]) -> list[tuple[int, str]] | None:
        """Returns the counts and ids of the fewest agents that have the slots together, those with most first; None if
        all together have fewer."""
        chosen: list[tuple[int, str]] = []
        for count in range(min(len(self._buckets) - 1, self.total), 0, -1):
            for agent_id in self._buckets[count]:
                if agent_id not in banned:
                    chosen.append((count, agent_id))
                    slots -= count
                    if slots <= 0:
                        return chosen
        return None

    def sum(self, banned: Collection[str]) -> int:
        """Returns the slots of placeable agents outside ``banned``."""
        total = self.total
        for agent_id in banned:
            if agent_id in self.placeable:
                total -= self.count[agent_id]
        return total
