"""Places the processes of roles on the slots of an allocation. Pure: each container computes the same result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from determined_launch.environment import RendezvousFacts
from determined_launch.role_file import Role


@dataclass(frozen=True)
class RoleProcess:
    """One process of a role.

    ``rank`` counts the processes of all roles, container by container; ``index`` counts within the role, in the same
    order. ``slots`` are numbers of slots within the container, from 0.
    """

    role: Role
    index: int
    rank: int
    container: int
    slots: tuple[int, ...]

    @property
    def label(self) -> str:
        """Returns the name for people: ``trainer[0]``."""
        return f"{self.role.name}[{self.index}]"


def place(roles: Sequence[Role], facts: RendezvousFacts) -> list[RoleProcess]:
    """Returns the processes in the order of their ranks.

    Each process takes its slots in the first container that has enough free ones. If none has, all slots count as free
    again, so that processes share slots in turn. A process without slots is in the chief's container. Raises ValueError
    if a process needs more slots than the largest container has.
    """
    counts = [max(1, count) for count in facts.slots]
    free = _Free(counts)
    seats = [(role, *free.take(role.slots)) for role in roles for _ in range(role.count)]
    seats.sort(key=lambda seat: seat[1])  # stable: the order of the list within a container
    indices = {role.name: 0 for role in roles}
    placed = []
    for rank, (role, container, slots) in enumerate(seats):
        placed.append(RoleProcess(role, indices[role.name], rank, container, slots))
        indices[role.name] += 1
    return placed


def sharing(processes: Sequence[RoleProcess], facts: RendezvousFacts) -> str:
    """Returns a sentence about processes that share slots; empty if none do."""
    taken = [(process.container, slot) for process in processes for slot in process.slots]
    shared = sorted({slot for slot in taken if taken.count(slot) > 1})
    if not shared:
        return ""
    asked, total = len(taken), sum(max(1, count) for count in facts.slots)
    most = max(taken.count(slot) for slot in shared)
    have = "1 slot" if total == 1 else f"{total} slots"
    return f"the roles ask for {asked} slots and the trial has {have}: up to {most} processes share a slot"


class _Free:
    """The slots of each container that no process of the present turn has."""

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = counts
        self._taken = [0] * len(counts)

    def take(self, count: int) -> tuple[int, tuple[int, ...]]:
        """Returns a container and the numbers of ``count`` of its slots."""
        if count == 0:
            return 0, ()
        container = next(self._fitting(count), None)
        if container is None:
            self._taken = [0] * len(self._counts)
            container = next(self._fitting(count), None)
            if container is None:
                raise ValueError(f"no container has {count} slots")
        first = self._taken[container]
        self._taken[container] += count
        return container, tuple(range(first, first + count))

    def _fitting(self, count: int) -> Iterator[int]:
        pairs = enumerate(zip(self._counts, self._taken, strict=True))
        return (container for container, (total, taken) in pairs if total - taken >= count)


def members(processes: Sequence[RoleProcess], role: Role) -> list[RoleProcess]:
    """Returns the processes of a role in the order of their indices."""
    return [process for process in processes if process.role.name == role.name]
