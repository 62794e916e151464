"""A decision in the making: the slots that it gives and reserves are taken from the pool's index, and given back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from determined_master.scheduling.agent_index import AgentIndex
from determined_master.scheduling.fitting import Choice, Room, fit
from determined_master.scheduling.plan import Part, Placement, Release
from determined_master.scheduling.request_queue import ShapeQueue
from determined_master.scheduling.shapes import Shape
from determined_master.scheduling.slot_counts import SlotCounts
from determined_master.scheduling.view import RequestView, RunningView

if TYPE_CHECKING:
    from determined_master.scheduling.pool_state import PoolState

MAX_ROUNDS = 20


class SlotReservation(NamedTuple):
    """``agents``: those of which it gets slots, once these are chosen; never any of ``banned``."""

    request: RequestView
    shape: Shape
    banned: Collection[str]
    agents: tuple[str, ...] = ()


class SchedulingDecision:
    """``placed`` and ``releases`` are the decision. ``reserved`` and ``stuck`` are of the round: a round goes through
    the queue, and the last one changes nothing."""

    __slots__ = (
        "_coming_slots",
        "_given",
        "_soon",
        "_taken",
        "is_changed",
        "is_complete",
        "is_unsettled",
        "placed",
        "pool",
        "released_for",
        "releases",
        "reserved",
        "room",
        "rounds",
        "stuck",
        "unchosen",
    )

    def __init__(self, state: PoolState, *, is_complete: bool) -> None:
        self.pool = state
        self.is_complete = is_complete
        """True: ``stuck`` is needed, so a pass goes on when nothing is left to give."""
        self.room = state.room
        self.placed: dict[str, Placement] = {}
        self.releases: dict[str, Release] = {}
        self.released_for: set[str] = set()
        self._coming_slots = state.leaving_slots
        """Slots of all that is leaving or released, whatever agents they are of."""
        self.reserved: dict[str, SlotReservation] = {}
        """Requests that start when allocations which are leaving have left."""
        self.stuck: list[tuple[RequestView, ShapeQueue]] = []
        """Requests that wait for slots and have none reserved; filled if the decision is complete."""
        self.is_changed = False
        """True if the round gave or released something."""
        self.is_unsettled = False
        """True if it did so after it reserved slots: the reservation may look different then."""
        self.rounds = 0
        self.unchosen: SlotReservation | None = None
        """The last one of ``reserved``, while its slots are not chosen."""
        self._taken: list[tuple[str, int]] = []
        """Free slots that are reserved."""
        self._soon: Room | None = None
        self._given: SlotCounts | None = None
        """None until somebody asks: most pools have no limit."""

    def begin_round(self) -> bool:
        """Forgets the reservations of the last round. Returns False if there were too many rounds."""
        if self.rounds == MAX_ROUNDS:
            return False
        if self.rounds:
            self._give_back_reserved()
        self.rounds += 1
        self.is_changed = self.is_unsettled = False
        return True

    def placements(self) -> tuple[Placement, ...]:
        return tuple(self.placed.values())

    @property
    def given(self) -> SlotCounts:
        """Slots of what is placed and reserved."""
        if self._given is None:
            self._given = SlotCounts()
            for request, slots in self.served():
                self._count(request, slots)
        return self._given

    def started(self) -> Iterator[tuple[RequestView, int]]:
        """Yields what is placed, and its slots."""
        queue = self.pool.queue
        for allocation_id in self.placed:
            yield queue[allocation_id], queue.line_of(allocation_id).shape_queue.shape.slots

    def served(self) -> Iterator[tuple[RequestView, int]]:
        """Yields what is placed or reserved, and its slots."""
        yield from self.started()
        for reserved in self.reserved.values():
            yield reserved.request, reserved.shape.slots

    def is_held(self, request: RequestView, slots: int) -> bool:
        of_job, of_user = self.given.of_job, self.given.of_user
        return self.pool.is_held(request, slots, of_job.get(request.job_id, 0), of_user.get(request.user_id, 0))

    def start(self, request: RequestView, shape: Shape, choices: Collection[Choice]) -> None:
        """Gives free slots to a request."""
        new = tuple.__new__  # ``Part(…)`` takes twice as long, and every decision makes some
        parts = []
        index, soon, free_slots = self.room.index, self._soon, self.pool.free
        for agent_id, count, group in choices:
            free = free_slots[agent_id]
            parts.append(new(Part, (agent_id, tuple(free[:count]), group)))
            if count:
                del free[:count]
                index.change(agent_id, -count)
                if soon is not None:
                    soon.index.change(agent_id, -count)
            else:
                self.pool.take_container(agent_id, 1)
        self.placed[request.allocation_id] = new(Placement, (request.allocation_id, tuple(parts)))
        self._count(request, shape.slots)
        self.is_changed = True
        if self.reserved:
            self.is_unsettled = True

    def take_back(self, allocation_id: str) -> None:
        """Lets a request wait that was placed in this decision, because another one takes its slots."""
        parts = self.placed.pop(allocation_id).parts
        self._return(parts)
        if self._soon is not None:
            for part in parts:
                self._soon.index.change(part.agent_id, len(part.slots))
        self._count(self.pool.queue[allocation_id], -sum(len(part.slots) for part in parts))
        self.is_changed = self.is_unsettled = True

    def release(self, release: Release) -> None:
        self.releases[release.allocation_id] = release
        self._coming_slots += self.pool.running[release.allocation_id].slots
        if release.for_allocation_id is not None:
            self.released_for.add(release.for_allocation_id)
        self.is_changed = True
        if self.reserved:
            self.is_unsettled = True

    def reserve(self, request: RequestView, shape: Shape, banned: Collection[str]) -> None:
        """Keeps slots for a request that fits in ``soon``. Which ones is chosen when the next request needs to know it:
        often there is none, because nothing is left."""
        self.choose_reserved()
        self.unchosen = self.reserved[request.allocation_id] = SlotReservation(request, shape, banned)
        self._count(request, shape.slots)
        if shape.is_pinned:
            # Its agent may be disabled: then ``upper_bound_soon`` does not count the slots that it gets.
            self.choose_reserved()

    def choose_reserved(self) -> None:
        """Chooses the slots of the last reservation: first those of allocations that are leaving, then free ones. Due
        before anything else is given, released or reserved, and before a look at single agents."""
        reserved = self.unchosen
        if reserved is None:
            return
        self.unchosen = None
        choices = fit(reserved.shape, self.soon, reserved.banned)
        assert choices is not None
        soon, now = self.soon.index, self.room.index
        for agent_id, count, _ in choices:
            free = count - (soon.count[agent_id] - now.count[agent_id])
            soon.change(agent_id, -count)
            if free > 0:
                now.change(agent_id, -free)
                self._taken.append((agent_id, free))
        agents = tuple([agent_id for agent_id, _, _ in choices])
        self.reserved[reserved.request.allocation_id] = reserved._replace(agents=agents)

    @property
    def has_leaving(self) -> bool:
        return bool(self.pool.leaving or self.releases)

    def upper_bound_soon(self) -> int:
        """Returns no less than the slots of placeable agents that are free soon, without a look at the agents."""
        soon, unchosen = self._soon, self.unchosen
        total = self.room.index.total + self._coming_slots if soon is None else soon.index.total
        return total if unchosen is None else total - unchosen.shape.slots

    def total_soon(self) -> int:
        """Returns the slots of placeable agents that are free soon. The reserved ones have to be chosen."""
        if self._soon is not None:
            return self._soon.index.total
        total = self.room.index.total
        for running in self._all_leaving():
            total += self.pool.count_coming(running.parts)
        return total

    def _all_leaving(self) -> list[RunningView]:
        return [*self.pool.leaving.values(), *[self.pool.running[name] for name in self.releases]]

    @property
    def has_soon(self) -> bool:
        """Returns whether ``soon`` is counted already, so that releases have to be counted there too."""
        return self._soon is not None

    @property
    def soon(self) -> Room:
        """Slots that are free, or will be when the allocations that are leaving have left; without reserved ones."""
        if self._soon is None:
            index: AgentIndex = self.room.index.copy()
            for running in self._all_leaving():
                for agent_id, count in self.pool.coming(running.parts):
                    index.change(agent_id, count)
            self._soon = Room(index, self.room.zero_slots, self.room.fitting)
        return self._soon

    def is_expecting(self, request: RequestView) -> bool:
        """Returns whether an allocation is leaving for the request, so that no other is asked to."""
        name = request.allocation_id
        return name in self.pool.leaving_for or name in self.released_for

    def confirm(self, placement: Placement) -> bool:
        """Keeps what the decision took for a placement that was applied. Returns False if it took something else."""
        placed = self.placed.get(placement.allocation_id)
        if placed is None or placed.parts != placement.parts:
            return False
        del self.placed[placement.allocation_id]
        if self.reserved:
            self._give_back_reserved()
        return True

    def undo(self) -> None:
        """Gives everything back; the decision itself stays."""
        if self.reserved:
            self._give_back_reserved()
        for placed in self.placed.values():
            self._return(placed.parts)

    def _give_back_reserved(self) -> None:
        for agent_id, count in self._taken:
            self.room.index.change(agent_id, count)
        self._taken.clear()
        self.unchosen = None
        for reserved in self.reserved.values():
            self._count(reserved.request, -reserved.shape.slots)
        self.reserved.clear()
        self.stuck.clear()
        self._soon = None

    def _return(self, parts: Collection[Part]) -> None:
        for part in parts:
            if part.slots:
                free = self.pool.free[part.agent_id]
                free.extend(part.slots)
                free.sort()
                self.room.index.change(part.agent_id, len(part.slots))
            else:
                self.pool.take_container(part.agent_id, -1)

    def _count(self, request: RequestView, slots: int) -> None:
        if self._given is not None:
            self._given.add(request.job_id, request.user_id, slots)
