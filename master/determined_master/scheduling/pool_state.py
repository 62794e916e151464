"""Agents, queue and running allocations of a pool, kept up to date by single changes."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from determined_master.scheduling.agent_index import AgentIndex
from determined_master.scheduling.capacity import Capacity
from determined_master.scheduling.fitting import Room
from determined_master.scheduling.plan import Part
from determined_master.scheduling.request_queue import QueueLine, RequestQueue, ShapeQueue
from determined_master.scheduling.slot_counts import SlotCounts
from determined_master.scheduling.victims import Victims
from determined_master.scheduling.view import AgentView, PoolView, RequestView, RunningView, SchedulerView

BY_KEY = attrgetter("key")


class Shapes(NamedTuple):
    """``changes``: state of the queue's counter for which it is valid."""

    changes: int
    slotted: list[ShapeQueue]
    zero_slots: list[ShapeQueue]
    impossible: list[ShapeQueue]
    """Shapes that the pool could never hold."""
    least: int
    """Free slots of placeable agents without which none of ``slotted`` can start."""


class PoolState:
    """Agents, queue and running allocations of one pool. Its ``Scheduler`` decides from it and says when it may be
    changed: ``Scheduler.edit``."""

    def __init__(self, name: str, scheduler: SchedulerView) -> None:
        self.name = name
        self.scheduler = scheduler
        self.agents: dict[str, AgentView] = {}
        self.free: dict[str, list[int]] = {}
        """Free slots of each agent in ascending order."""
        self._disabled: dict[str, tuple[int, ...]] = {}
        """Disabled slots of the agents that have some."""
        self.room = Room(AgentIndex(), {}, scheduler.fitting)
        """Free slots, counted, of connected agents."""
        self.running: dict[str, RunningView] = {}
        self.leaving: dict[str, RunningView] = {}
        self.leaving_slots = 0
        """Slots of those that are leaving."""
        self.leaving_for: dict[str, int] = {}
        """Number of allocations that leave for each request."""
        self.victims = Victims(self.running)
        self._limited: dict[str, dict[str, RunningView]] = {}
        """Running trials of each job with a limit of slots, without those that are leaving."""
        self._limited_slots: dict[str, int] = {}
        self.max_slots: dict[str, int] = {}
        """Limits of jobs that differ from those of their requests; see ``limit``."""
        self._held: SlotCounts | None = None
        """None until somebody asks: most pools have no limit."""
        is_fair, limit = scheduler.kind == "fair_share", scheduler.max_slots_per_user
        self.queue = RequestQueue(by_job=is_fair, by_user=limit is not None, is_held=self._is_line_held)
        self._zero_slots: dict[str, int] = {}
        self.room.zero_slots = self._zero_slots
        self._capacity: Capacity | None = None
        self._shapes: Shapes | None = None

    @classmethod
    def of(cls, pool: PoolView) -> "PoolState":
        state = cls(pool.name, pool.scheduler)
        for agent in pool.agents:
            state.set_agent(agent)
        for running in pool.running:
            state.run(running)
        state.queue.add_all(pool.waiting)
        return state

    def view(self) -> PoolView:
        """Returns the same as a frozen view."""
        agents = tuple(self.agent(agent_id) for agent_id in self.agents)
        waiting, running = tuple(self.queue.values()), tuple(self.running.values())
        return PoolView(self.name, agents, waiting, running, self.scheduler)

    def agent(self, agent_id: str) -> AgentView:
        """Returns an agent with the slots that are free now."""
        room = self._zero_slots.get(agent_id, 0)
        return replace(self.agents[agent_id], free=tuple(self.free[agent_id]), zero_slot_room=room)

    def set_agent(self, agent: AgentView) -> None:
        """Adds or changes an agent. Its free slots are those of the view: none that a running allocation holds."""
        known = self.agents.get(agent.id)
        if known is not None and replace(agent, free=known.free, zero_slot_room=known.zero_slot_room) == known:
            # What it could hold stays the same, and with it what was learned about the shapes of the queue.
            if agent.is_connected:
                self.room.index.change(agent.id, len(agent.free) - len(self.free[agent.id]))
        else:
            self.remove_agent(agent.id)
            if agent.disabled:
                self._disabled[agent.id] = agent.disabled
            if agent.is_connected:
                self.room.index.add(agent.id, len(agent.free), agent.total, placeable=agent.placeable)
        self.agents[agent.id] = agent
        self.free[agent.id] = sorted(agent.free)
        self._zero_slots[agent.id] = agent.zero_slot_room if agent.is_connected else 0

    def remove_agent(self, agent_id: str) -> None:
        self.agents.pop(agent_id, None)
        self.free.pop(agent_id, None)
        self._disabled.pop(agent_id, None)
        self._zero_slots.pop(agent_id, None)
        self.room.index.discard(agent_id)
        self._forget_capacity()

    def add(self, request: RequestView) -> None:
        self.queue.add(request)

    def remove(self, allocation_id: str) -> RequestView:
        """Removes a request that waits, for example because its experiment is paused."""
        return self.queue.remove(allocation_id)

    def hold(self, running: RunningView) -> None:
        """Adds an allocation and takes its slots from the free ones."""
        self.take(running.parts)
        self.run(running)

    def take(self, parts: Collection[Part]) -> None:
        """Takes slots and room for containers from the free ones."""
        for part in parts:
            if part.agent_id not in self.agents:
                continue
            free = self.free[part.agent_id]
            before, count = len(free), len(part.slots)
            if count == 0:
                self.take_container(part.agent_id, 1)
                continue
            if tuple(free[:count]) == part.slots:
                del free[:count]
            else:
                free[:] = [slot for slot in free if slot not in part.slots]
            if part.agent_id in self.room.index.count:
                self.room.index.change(part.agent_id, len(free) - before)

    def run(self, running: RunningView) -> None:
        """Adds an allocation that holds its slots already: they are not among the free ones of the agents."""
        self._enter(running)
        self._count(running, 1)

    def forget(self, allocation_id: str) -> None:
        """Removes an allocation whose agents are set anew: its slots are not given back here."""
        running = self.running[allocation_id]
        self._exit(running)
        self._count(running, -1)

    def replace(self, request: RequestView) -> None:
        """Changes a request that waits."""
        self.remove(request.allocation_id)
        self.add(request)

    def replace_running(self, running: RunningView) -> None:
        """Changes a running allocation, for example its priority; its parts stay."""
        former = self.running[running.allocation_id]
        self._exit(former)
        self._count(former, -1)
        self.run(running)

    def limit(self, job_id: str, max_slots: int | None) -> None:
        """Sets another limit for a job whose requests have one; None restores theirs."""
        self.max_slots.pop(job_id, None)
        if max_slots is not None:
            self.max_slots[job_id] = max_slots
        self.queue.recheck(job_id, -1)

    @property
    def is_over_limit(self) -> bool:
        """Returns whether a job holds more slots than its limit, which was lowered."""
        return any(True for _ in self.over_limit())

    def over_limit(self) -> Iterator[RunningView]:
        """Yields what has to leave so that no job holds more slots than its limit: of each job first what comes last in
        the queue's order."""
        for job_id, slots in self._limited_slots.items():
            views = self._limited[job_id]
            limit = self.max_slots.get(job_id, next(iter(views.values())).max_slots)
            if limit is None or slots <= limit:
                continue
            for running in sorted(views.values(), key=BY_KEY, reverse=True):
                if slots <= limit:
                    break
                slots -= running.slots
                yield running

    def take_container(self, agent_id: str, count: int) -> None:
        """Takes room for containers without slots; gives it back if ``count`` is negative."""
        self._zero_slots[agent_id] -= count

    def leave(self, allocation_id: str, for_allocation_id: str | None = None) -> None:
        """Records that a running allocation was asked to leave."""
        running = self.running[allocation_id]
        if not running.leaving:
            self._exit(running)
            self._enter(running.asked_to_leave(for_allocation_id))

    def end(self, allocation_id: str) -> None:
        """Records that an allocation ended; its slots are free unless they are disabled."""
        running, index = self.running[allocation_id], self.room.index
        self._exit(running)
        self._count(running, -1)
        for agent_id, slot_ids, _ in running.parts:
            free, disabled = self.free.get(agent_id), self._disabled.get(agent_id, ())
            if free is None:
                continue
            if not slot_ids:
                self.take_container(agent_id, -1 if self.agents[agent_id].is_connected else 0)
                continue
            returned = [slot for slot in slot_ids if slot not in disabled] if disabled else slot_ids
            free.extend(returned)
            free.sort()
            if agent_id in index.count:
                index.change(agent_id, len(returned))

    def set_scheduler(self, scheduler: SchedulerView) -> None:
        """Replaces what a provider could add. All other fields of ``scheduler`` must equal the present ones."""
        if scheduler != self.scheduler:
            self.scheduler = scheduler
            self._forget_capacity()

    def is_held(self, request: RequestView, slots: int, more_of_job: int = 0, more_of_user: int = 0) -> bool:
        """Returns whether a limit of slots forbids the request now; ``more`` are slots given but not recorded yet."""
        if slots == 0:
            return False
        limit = self.scheduler.max_slots_per_user
        of_its_job = self.max_slots.get(request.job_id, request.max_slots)
        if of_its_job is not None and self.held.of_job.get(request.job_id, 0) + more_of_job + slots > of_its_job:
            return True
        return limit is not None and self.held.of_user.get(request.user_id, 0) + more_of_user + slots > limit

    @property
    def held(self) -> SlotCounts:
        """Slots that the running allocations of each job and user hold."""
        if self._held is None:
            self._held = SlotCounts()
            for running in self.running.values():
                self._held.add(running.job_id, running.user_id, running.slots)
        return self._held

    def shapes(self) -> Shapes:
        """Returns the shapes of the queue by kind; computed when a shape or an agent came or went."""
        if self._shapes is None or self._shapes.changes != self.queue.changes:
            slotted: list[ShapeQueue] = []
            zero_slots: list[ShapeQueue] = []
            impossible: list[ShapeQueue] = []
            for queue in self.queue.shapes.values():
                self.usable_by(queue)
                kind = impossible if queue.is_impossible else slotted if queue.shape.slots else zero_slots
                kind.append(queue)
            is_pinned = any(queue.shape.is_pinned for queue in slotted)
            least = 0 if is_pinned else min((queue.shape.slots for queue in slotted), default=0)
            self._shapes = Shapes(self.queue.changes, slotted, zero_slots, impossible, least)
        return self._shapes

    def usable_by(self, queue: ShapeQueue) -> frozenset[str]:
        """Returns the agents of which a shape could use slots."""
        if queue.usable is None:
            queue.usable = self.capacity.usable_by(queue.shape)
            queue.is_impossible = not self.capacity.could_ever_hold(queue.shape)
        return queue.usable

    @property
    def capacity(self) -> Capacity:
        if self._capacity is None:
            provided = self.scheduler.provider_can_add
            self._capacity = Capacity(self.name, self.agents.values(), provided, self.scheduler.fitting)
        return self._capacity

    def coming(self, parts: Collection[Part]) -> list[tuple[str, int]]:
        """Returns how many slots of each agent are free for others when an allocation with these parts has ended."""
        connected, disabled = self.room.index.count, self._disabled
        counts = []
        for agent_id, slots, _ in parts:
            if slots and agent_id in connected:
                counts.append((agent_id, _enabled(slots, disabled[agent_id]) if agent_id in disabled else len(slots)))
        return counts

    def count_coming(self, parts: Collection[Part]) -> int:
        """Returns how many slots of placeable agents are free for others when an allocation with these parts has
        ended."""
        placeable, disabled = self.room.index.placeable, self._disabled
        total = 0
        for agent_id, slots, _ in parts:
            if agent_id in placeable:
                total += _enabled(slots, disabled[agent_id]) if agent_id in disabled else len(slots)
        return total

    def _forget_capacity(self) -> None:
        self._capacity = self._shapes = None
        for queue in self.queue.shapes.values():
            queue.usable = None

    def _is_line_held(self, line: QueueLine) -> bool:
        request = line.requests[0]
        return self.is_held(request, line.shape_queue.shape.slots)

    def _enter(self, running: RunningView) -> None:
        self.running[running.allocation_id] = running
        if running.leaving:
            self.leaving[running.allocation_id] = running
            self.leaving_slots += running.slots
            if running.leaving_for is not None:
                self.leaving_for[running.leaving_for] = self.leaving_for.get(running.leaving_for, 0) + 1
        elif running.preemptible:
            self.victims.add(running)
            if running.max_slots is not None:
                self._limited.setdefault(running.job_id, {})[running.allocation_id] = running
                self._limited_slots[running.job_id] = self._limited_slots.get(running.job_id, 0) + running.slots

    def _exit(self, running: RunningView) -> None:
        del self.running[running.allocation_id]
        if running.leaving:
            del self.leaving[running.allocation_id]
            self.leaving_slots -= running.slots
            if running.leaving_for is not None:
                self.leaving_for[running.leaving_for] -= 1
                if not self.leaving_for[running.leaving_for]:
                    del self.leaving_for[running.leaving_for]
        elif running.preemptible:
            self.victims.remove(running.allocation_id)
            if running.max_slots is not None:
                self._limited_slots[running.job_id] -= running.slots
                del self._limited[running.job_id][running.allocation_id]
                if not self._limited[running.job_id]:
                    del self._limited[running.job_id], self._limited_slots[running.job_id]

    def _count(self, running: RunningView, sign: int) -> None:
        """Adds the slots of an allocation to those of its job and user if somebody has a limit; -1 takes them away."""
        held, queue = self._held, self.queue
        if held is None and not queue.lines_of_job and not queue.lines_of_user:
            return
        job_id, user_id, slots = running.job_id, running.user_id, sign * running.slots
        if slots and held is not None:
            held.add(job_id, user_id, slots)
        if slots:
            queue.recheck(job_id, user_id)


def _enabled(slots: Collection[int], disabled: Collection[int]) -> int:
    """Returns how many of the slots are not disabled."""
    return sum(slot not in disabled for slot in slots)
