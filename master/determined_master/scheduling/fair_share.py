"""Fills a pool so that jobs of one priority get slots in proportion to their weights."""

import heapq
from collections.abc import Iterator
from typing import Any

from determined_master.scheduling.backfill import Backfill
from determined_master.scheduling.fitting import fit
from determined_master.scheduling.preemption import Victim, victims_of_this_decision, wait_for_room
from determined_master.scheduling.request_queue import QueueLine, ShapeQueue
from determined_master.scheduling.scheduling_decision import SchedulingDecision
from determined_master.scheduling.view import RequestView


def decide_placements(decision: SchedulingDecision) -> None:
    """Decides for all requests of the pool. A round may let a job take what another one got in the last round beyond
    its share, so rounds go on until one changes nothing."""
    while decision.begin_round():
        decision.pool.shapes()
        for is_slotted in (True, False):
            _Round(decision, is_slotted=is_slotted).place()
        if not decision.is_changed:
            break


class _Round:
    def __init__(self, decision: SchedulingDecision, *, is_slotted: bool) -> None:
        self._decision = decision
        self._is_slotted = is_slotted
        self._backfill = Backfill(decision, preempts=True)
        self._slots: dict[str, int] = {}
        """Slots of each job that will stay its own."""
        self._weights: dict[str, float] = {}
        self._priorities: dict[str, int] = {}
        self._next: dict[QueueLine, int] = {}
        self._failed: set[ShapeQueue] = set()
        """Shapes for which nothing is free; a job may still take slots from another."""
        self._candidates: dict[str, list[Victim]] | None = None
        """Allocations of each job that could leave, the worst last; None if they have to be looked up again."""
        self._most: dict[int, float] = {}
        """Priority → what the richest job keeps, in relation to its weight, without the least that it could give."""
        for running in decision.pool.running.values():
            self._weights[running.job_id] = running.weight
            self._priorities[running.job_id] = running.priority
            if not running.leaving and running.allocation_id not in decision.releases:
                self._add(running.job_id, running.slots)
        for request, slots in decision.started():
            self._weights[request.job_id] = request.weight
            self._priorities[request.job_id] = request.priority
            self._add(request.job_id, slots)

    def place(self) -> None:
        """Lets the job that has least, in relation to its weight, choose next."""
        heap: list[tuple[int, float, Any, str]] = []
        for job_id in self._decision.pool.queue.lines_of_job:
            self._push(heap, job_id)
        heapq.heapify(heap)
        decision = self._decision
        shapes = decision.pool.shapes()
        least = 0 if decision.is_complete or not self._is_slotted else shapes.least
        while heap:
            _, share, order, job_id = heapq.heappop(heap)
            entry = self._entry(job_id)
            if entry is None:
                continue
            request, line = entry
            if decision.room.index.total < least and not decision.has_leaving and not self._could_take(request):
                # Nor could the others, which have more.
                break
            if (self._share(job_id), request.order) == (share, order):
                self._decide(request, line)
            self._push(heap, job_id)

    def _push(self, heap: list[tuple[int, float, Any, str]], job_id: str) -> None:
        entry = self._entry(job_id)
        if entry is not None:
            request = entry[0]
            self._weights[job_id], self._priorities[job_id] = request.weight, request.priority
            heapq.heappush(heap, (request.priority, self._share(job_id), request.order, job_id))

    def _entry(self, job_id: str) -> tuple[RequestView, QueueLine] | None:
        """Returns the best request of a job that was not decided on in this round, and its line."""
        best: tuple[RequestView, QueueLine] | None = None
        for line in self._decision.pool.queue.lines_of_job.get(job_id, ()):
            if bool(line.shape_queue.shape.slots) != self._is_slotted:
                continue
            requests = line.requests
            place = self._next.setdefault(line, 0 if line.is_open else len(requests))
            while place < len(requests) and requests[place].allocation_id in self._decision.placed:
                place += 1
            self._next[line] = place
            if place < len(requests) and (best is None or requests[place].order < best[0].order):
                best = (requests[place], line)
        return best

    def _decide(self, request: RequestView, line: QueueLine) -> None:
        decision, queue, backfill = self._decision, line.shape_queue, self._backfill
        shape = queue.shape
        end = len(line.requests)
        if queue.is_impossible or decision.is_held(request, shape.slots):
            self._next[line] = end
            return
        if queue not in self._failed:
            banned = backfill.bans(request).start
            choices = None if backfill.is_closed(banned, shape) else fit(shape, decision.room, banned)
            if choices is not None:
                decision.start(request, shape, choices)
                self._add(request.job_id, shape.slots)
                return
            self._failed.add(queue)
        before = set(decision.placed)
        if shape.slots and self._wait(request, queue):
            self._add(request.job_id, shape.slots)
            self._next[line] += 1
            backfill.close_for_reserved(decision.pool.usable_by(queue))
            self._settle(before)
            return
        self._next[line] = end
        if decision.is_expecting(request):
            backfill.shut(decision.pool.usable_by(queue))
        backfill.close(queue, decision.pool.usable_by(queue), request)
        decision.stuck.append((request, queue))

    def _wait(self, request: RequestView, queue: ShapeQueue) -> bool:
        victims = self._victims(request)
        is_served = wait_for_room(self._decision, request, queue, self._backfill.bans(request), victims)
        self._decision.choose_reserved()
        return is_served

    def _settle(self, before: set[str]) -> None:
        """Counts what releases and placements that were taken back changed."""
        decision = self._decision
        self._slots.clear()
        for running in decision.pool.running.values():
            if not running.leaving and running.allocation_id not in decision.releases:
                self._add(running.job_id, running.slots)
        for request, slots in decision.served():
            self._add(request.job_id, slots)
        if before - decision.placed.keys():
            self._failed.clear()

    def _victims(self, request: RequestView) -> Iterator[Victim]:
        """Yields allocations that may leave for a request, worst priority and largest share first: of jobs with a worse
        priority any, of others those without which their job still has more than the one of the request has now. So
        each release helps the poorer of the two, and no two jobs take the same slots from each other in turn."""
        if not self._could_take(request):
            return
        before = self._slots.get(request.job_id, 0) / request.weight
        by_job = {job_id: victims.copy() for job_id, victims in self._victims_by_job().items()}
        by_job.pop(request.job_id, None)
        left = dict(self._slots)
        heap = []
        for job_id in by_job:
            if self._priorities[job_id] >= request.priority:
                heap.append((-self._priorities[job_id], -self._share(job_id), job_id))
        heapq.heapify(heap)
        while heap:
            priority, _, job_id = heapq.heappop(heap)
            while by_job[job_id]:
                victim = by_job[job_id].pop()
                remaining = (left[job_id] - victim.slots) / self._weights[job_id]
                if -priority > request.priority or remaining > before:
                    left[job_id] -= victim.slots
                    heapq.heappush(heap, (priority, -remaining, job_id))
                    yield victim
                    break

    def _could_take(self, request: RequestView) -> bool:
        """Returns False if certainly nothing may leave for the request."""
        self._victims_by_job()
        before = self._slots.get(request.job_id, 0) / request.weight
        return any(
            priority > request.priority or (priority == request.priority and most > before)
            for priority, most in self._most.items()
        )

    def _victims_by_job(self) -> dict[str, list[Victim]]:
        if self._candidates is not None:
            return self._candidates
        by_job: dict[str, list[Victim]] = {}
        for running in self._decision.pool.victims.worse_than((), without=self._decision.releases):
            if running.slots:
                by_job.setdefault(running.job_id, []).append(running)
        for victim in victims_of_this_decision(self._decision):
            by_job.setdefault(victim.job_id, []).append(victim)
        self._most = {}
        for job_id, victims in by_job.items():
            victims.sort(key=lambda v: v.key)
            remaining = (self._slots[job_id] - min(v.slots for v in victims)) / self._weights[job_id]
            priority = self._priorities[job_id]
            self._most[priority] = max(remaining, self._most.get(priority, remaining))
        self._candidates = by_job
        return by_job

    def _share(self, job_id: str) -> float:
        return self._slots.get(job_id, 0) / self._weights[job_id]

    def _add(self, job_id: str, slots: int) -> None:
        self._candidates = None
        self._slots[job_id] = self._slots.get(job_id, 0) + slots
