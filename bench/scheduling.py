"""The scheduler with priorities and preemption: its algorithm against a minimal one. ``long_queue`` has the figures
with a database."""

import gc
import random
import time
from datetime import UTC, datetime, timedelta

from bench.figure import Figure, paired
from bench.reference import scheduler as reference
from determined_master.scheduling.scheduler import Scheduler
from determined_master.scheduling.view import AgentView, PoolView, RequestView, SchedulerView, TaskGroup

AGENTS, SLOTS, QUEUED, PLACED = 1000, 8, 100_000, 20_000
START = datetime(2026, 1, 1, tzinfo=UTC)


def requests(count: int) -> list[tuple[int, int]]:
    """Returns priority and slots of each request."""
    rng = random.Random(1)
    return [(rng.randrange(1, 100), rng.choice((1, 1, 1, 2, 4))) for _ in range(count)]


def filled(count: int) -> Scheduler:
    waiting = tuple(
        RequestView(
            f"{number}.1",
            f"job-{number}",
            (TaskGroup(slots=slots),),
            priority,
            1.0,
            float(number),
            START + timedelta(seconds=number),
            1,
            True,
        )
        for number, (priority, slots) in enumerate(requests(count))
    )
    agents = tuple(AgentView(f"agent-{n:04}", tuple(range(SLOTS)), SLOTS) for n in range(AGENTS))
    return Scheduler.of(PoolView("default", agents, waiting, scheduler=SchedulerView(preemption=True)))


class Work:
    """Ends one running allocation before each decision: a preempted one, or else a random one. The placements of the
    decision start, and its releases are preempted."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._rng = random.Random(2)
        self._running: list[str] = []
        self._place: dict[str, int] = {}
        self._leaving: list[str] = []

    def decide(self) -> int:
        steps = self._scheduler.steps()
        for placement in steps.placements:
            self._scheduler.start(placement)
            self._place[placement.allocation_id] = len(self._running)
            self._running.append(placement.allocation_id)
        for release in steps.releases:
            self._scheduler.edit().leave(release.allocation_id, release.for_allocation_id)
            self._take(release.allocation_id)
            self._leaving.append(release.allocation_id)
        return len(steps.placements)

    def end_one(self) -> None:
        if self._leaving:
            self._scheduler.edit().end(self._leaving.pop())
            return
        chosen = self._rng.choice(self._running)
        self._take(chosen)
        self._scheduler.edit().end(chosen)

    def _take(self, allocation_id: str) -> None:
        place, last = self._place.pop(allocation_id), self._running.pop()
        if last != allocation_id:
            self._running[place], self._place[last] = last, place


def placements_per_second() -> float:
    work = Work(filled(QUEUED))
    gc.collect()  # collects the garbage of the preparation
    start, placed = time.perf_counter(), work.decide()
    while placed < PLACED:
        work.end_one()
        placed += work.decide()
    return placed / (time.perf_counter() - start)


def figures(rounds: int = 5) -> list[Figure]:
    bare = requests(QUEUED)
    rates, words = paired(
        placements_per_second, lambda: reference.placements_per_second(AGENTS, SLOTS, bare, PLACED), rounds
    )
    return [
        Figure(
            "placements/s of the algorithm, 1,000 agents, 100,000 queued, over bare",
            0.1,
            rates,
            at_least=True,
            note=words + " placements/s",
        )
    ]


if __name__ == "__main__":
    for figure in figures():
        print(figure.line(), flush=True)
