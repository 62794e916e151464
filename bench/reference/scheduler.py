"""The minimal algorithm of a scheduler: a heap of requests and sets of agents by free slots.

It has no constraints, no gangs over several agents, no limits, no reasons and no preemption.
"""

import heapq
import random
import time


def placements_per_second(agents: int, slots: int, requests: list[tuple[int, int]], count: int) -> float:
    """Returns placements per second. ``requests``: priority and slots of each, in the order of submission. If the best
    one does not fit, a random running one ends."""
    rng = random.Random(2)
    queue = [(priority, number, needed) for number, (priority, needed) in enumerate(requests)]
    heapq.heapify(queue)
    by_free: list[set[int]] = [set() for _ in range(slots + 1)]
    by_free[slots].update(range(agents))
    free = [slots] * agents
    running: list[tuple[int, int]] = []
    placed = 0
    start = time.perf_counter()
    while placed < count and queue:
        needed = queue[0][2]
        bucket = next((bucket for bucket in by_free[needed:] if bucket), None)
        if bucket is None:
            place = rng.randrange(len(running))
            running[place], running[-1] = running[-1], running[place]
            agent, returned = running.pop()
            by_free[free[agent]].remove(agent)
            free[agent] += returned
            by_free[free[agent]].add(agent)
            continue
        agent = bucket.pop()
        free[agent] -= needed
        by_free[free[agent]].add(agent)
        heapq.heappop(queue)
        running.append((agent, needed))
        placed += 1
    return placed / (time.perf_counter() - start)
