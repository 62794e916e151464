"""Moves of jobs in the queue of a pool. Pure.

A queue is ordered by priority (smaller first), then position (microseconds), then job id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


def move(queue: Sequence[QueuedJob], job_id: str, *, anchor: str, is_ahead: bool) -> Move:
    """Moves a job right ahead of, or right behind, another job of its pool; it takes that job's priority.

    Raises BadRequest for an anchor that is not in the queue, or is the job itself.
    """
    if job_id == anchor:
        raise BadRequest(f"job {job_id} cannot be moved past itself")
    ordered = sorted(queue, key=lambda each: each.order)
    ids = [each.job_id for each in ordered]
    if anchor not in ids:
        raise BadRequest(f"job {anchor} is not in the queue of this pool")
    moved = ordered[ids.index(job_id)]
    others = [each for each in ordered if each.job_id != job_id]
    at = [each.job_id for each in others].index(anchor) + (0 if is_ahead else 1)
    priority = ordered[ids.index(anchor)].priority
    before = [each for each in others[:at] if each.priority == priority]
    after = [each for each in others[at:] if each.priority == priority]
    return Move(
        priority=priority,
        positions=_between(job_id, before[-1] if before else None, after),
        passed=tuple(each for each in others[at:] if each.order < moved.order),
    )


def _between(job_id: str, before: QueuedJob | None, after: Sequence[QueuedJob]) -> dict[str, int]:
    """Returns the position between two neighbours. Those behind move back where there is none left."""
    first = after[0].position if after else None
    if before is None:
        return {job_id: (first - 1_000_000) if first is not None else 0}
    if first is None:
        return {job_id: before.position + 1_000_000}
    if first - before.position >= 2:
        return {job_id: (before.position + first) // 2}
    found = {job_id: before.position + 1}
    last = before.position + 1
    for each in after:
        if each.position > last:
            break
        last += 1
        found[each.job_id] = last
    return found


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
