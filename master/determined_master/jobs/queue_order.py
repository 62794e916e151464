"""Moves of jobs in the queue of a pool. Pure.

A queue is ordered by priority (smaller first), then position (microseconds), then job id.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from determined.errors import BadRequest, Forbidden


@dataclass(frozen=True)
class QueuedJob:
    job_id: str
    user_id: int
    priority: int
    position: int
    """Microseconds since the epoch; first the time of submission."""

    @property
    def order(self) -> tuple[int, int, str]:
        return (self.priority, self.position, self.job_id)


@dataclass(frozen=True)
class Move:
    """``positions``: the moved job's, and those of jobs that make room for it, by job id. They keep their order."""

    priority: int
    positions: Mapping[str, int]
    passed: tuple[QueuedJob, ...]
    """Jobs that were ahead of the moved one and are behind it now."""


class QueueOrder:
    """The jobs of a queue in their order, which moves and new priorities change. It may be very long."""

    def __init__(self, queue: Iterable[QueuedJob]) -> None:
        self._jobs = {each.job_id: each for each in queue}
        self._places = sorted(each.order for each in self._jobs.values())

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._jobs

    def move(self, job_id: str, *, anchor: str, is_ahead: bool) -> Move:
        """Moves a job right ahead of, or right behind, another one; it takes that job's priority.

        Raises BadRequest for an anchor that is not in the queue, or is the job itself.
        """
        if job_id == anchor:
            raise BadRequest(f"job {job_id} cannot be moved past itself")
        if anchor not in self._jobs:
            raise BadRequest(f"job {anchor} is not in the queue of this pool")
        moved, priority = self._jobs[job_id], self._jobs[anchor].priority
        former = self._take_out(job_id)
        at = self._index(anchor) + (0 if is_ahead else 1)
        passed = tuple(self._jobs[name] for _, _, name in self._places[at:former])
        before = self._jobs[self._places[at - 1][2]] if at else None
        if before is not None and before.priority != priority:
            before = None
        positions = _between(job_id, before, self._of_priority(at, priority))
        self._put(replace(moved, priority=priority))
        for name, position in positions.items():
            self._take_out(name)
            self._put(replace(self._jobs[name], position=position))
        return Move(priority, positions, passed)

    def set_priority(self, job_id: str, priority: int) -> None:
        """Changes the priority of a job, which need not be in the queue."""
        if job_id in self._jobs:
            self._take_out(job_id)
            self._put(replace(self._jobs[job_id], priority=priority))

    def _of_priority(self, at: int, priority: int) -> Iterator[QueuedJob]:
        """Yields the jobs from the place ``at`` on, up to the first one of another priority."""
        for _, _, name in islice(self._places, at, None):
            if self._jobs[name].priority != priority:
                return
            yield self._jobs[name]

    def _index(self, job_id: str) -> int:
        return bisect_left(self._places, self._jobs[job_id].order)

    def _take_out(self, job_id: str) -> int:
        at = self._index(job_id)
        del self._places[at]
        return at

    def _put(self, job: QueuedJob) -> None:
        self._jobs[job.job_id] = job
        insort(self._places, job.order)


def move(queue: Iterable[QueuedJob], job_id: str, *, anchor: str, is_ahead: bool) -> Move:
    """Returns what moving one job of a queue changes, see ``QueueOrder.move``."""
    return QueueOrder(queue).move(job_id, anchor=anchor, is_ahead=is_ahead)


def _between(job_id: str, before: QueuedJob | None, after: Iterator[QueuedJob]) -> dict[str, int]:
    """Returns the position between two neighbours. Those behind move back where there is none left."""
    follower = next(after, None)
    first = follower.position if follower is not None else None
    if before is None:
        return {job_id: (first - 1_000_000) if first is not None else 0}
    if follower is None or first is None:
        return {job_id: before.position + 1_000_000}
    if first - before.position >= 2:
        return {job_id: (before.position + first) // 2}
    last = before.position + 1
    places = {job_id: last}
    for each in chain([follower], after):
        if each.position > last:
            break
        last += 1
        places[each.job_id] = last
    return places


def check_priority(*, new: int, old: int, default: int, is_admin: bool) -> None:
    """Raises Forbidden where an owner makes a job more urgent than the pool's default."""
    if new < old and new < default and not is_admin:
        raise Forbidden(
            f"only an admin may give a job a better priority than its pool's default ({default}); "
            f"you may set {default} or a larger number"
        )


def check_passed(moved: Move, user_id: int, *, is_admin: bool) -> None:
    """Raises Forbidden where an owner moves a job past those of others."""
    others = [each.job_id for each in moved.passed if each.user_id != user_id]
    if others and not is_admin:
        count = f"{len(others)} jobs" if len(others) > 1 else f"job {others[0]}"
        raise Forbidden(f"only an admin may move a job ahead of those of other users; it would pass {count}")
