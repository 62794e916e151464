"""The queue of a pool, by shape: a shape that does not fit is passed over as a whole, however many wait in it."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, TypeVar

from determined_master.scheduling.shapes import Shape, shape_of
from determined_master.scheduling.sorted_queue import SortedQueue
from determined_master.scheduling.view import RequestView

Key = tuple[Any, ...]


class Line:
    """Requests of one shape that the same limits hold back. ``is_open``: the limits leave room for the first."""

    __slots__ = ("has_limit", "is_open", "job_id", "max_slots", "requests", "shape_queue", "user_id")

    def __init__(
        self, shape_queue: "ShapeQueue", job_id: str | None, max_slots: int | None, user_id: int | None
    ) -> None:
        self.shape_queue = shape_queue
        self.job_id = job_id
        self.max_slots = max_slots
        self.user_id = user_id
        self.requests: SortedQueue[RequestView] = SortedQueue()
        self.is_open = True
        self.has_limit = max_slots is not None or user_id is not None


class ShapeQueue:
    """All requests of one shape. ``heads``: the open lines, by the order of their first requests."""

    __slots__ = ("heads", "is_impossible", "key", "lines", "shape", "usable")

    def __init__(self, key: Key, shape: Shape) -> None:
        self.key = key
        self.shape = shape
        self.lines: dict[Key, Line] = {}
        self.heads: SortedQueue[Line] = SortedQueue()
        self.usable: frozenset[str] | None = None
        """Agents that it could use; None if not computed since the agents changed."""
        self.is_impossible = False
        """True if no agent of the pool could ever hold it; valid if ``usable`` is."""

    def has_between(self, low: Key, high: Key, waits: Callable[[RequestView, Line], bool]) -> bool:
        """Returns whether a request with an order of at least ``low`` and less than ``high`` waits in an open line."""
        for line in self.heads:
            keys, values = line.requests.keys, line.requests.values
            for place in range(bisect_left(keys, low, line.requests.first), len(keys)):
                if keys[place] >= high:
                    break
                if waits(values[place], line):
                    return True
        return False


class RequestQueue:
    """``by_job``: True keeps a line for each job even without a limit. ``is_held`` says of a line whether its limits
    hold it back."""

    def __init__(self, *, by_job: bool, by_user: bool, is_held: Callable[[Line], bool]) -> None:
        self._by_job = by_job
        self._by_user = by_user
        self._is_held = is_held
        self.requests: dict[str, RequestView] = {}
        self.shapes: dict[Key, ShapeQueue] = {}
        self.changes = 0
        """Counts how often a shape came or went."""
        self._line_of: dict[str, Line] = {}
        self.lines_of_job: dict[str, dict[Line, None]] = {}
        self.lines_of_user: dict[int, dict[Line, None]] = {}

    def add(self, request: RequestView) -> None:
        line = self._line_for(request)
        self.requests[request.allocation_id] = request
        self._line_of[request.allocation_id] = line
        self._take_out(line)
        line.requests.add(request.order, request)
        self._put_back(line)

    def add_all(self, requests: Collection[RequestView]) -> None:
        """Adds many requests in less time than one by one."""
        by_line: dict[Line, list[tuple[Key, RequestView]]] = {}
        for request in requests:
            line = self._line_for(request)
            by_line.setdefault(line, []).append((request.order, request))
            self.requests[request.allocation_id] = request
            self._line_of[request.allocation_id] = line
        heads: dict[ShapeQueue, list[tuple[Key, Line]]] = {}
        for line, pairs in by_line.items():
            self._take_out(line)
            line.requests.extend(pairs)
            line.is_open = not (line.has_limit and self._is_held(line))
            if line.is_open:
                first = line.requests.keys[line.requests.first]
                heads.setdefault(line.shape_queue, []).append((first, line))
        for queue, lines in heads.items():
            queue.heads.extend(lines)

    def line_of(self, allocation_id: str) -> Line:
        return self._line_of[allocation_id]

    def remove(self, allocation_id: str) -> RequestView:
        request = self.requests.pop(allocation_id)
        line = self._line_of.pop(allocation_id)
        requests, queue = line.requests, line.shape_queue
        if requests.values[requests.first] is not request:
            requests.remove(request.order)
        elif line.has_limit or len(requests.keys) == requests.first + 1 or len(queue.lines) > 1:
            self._take_out(line)
            requests.remove_first()
            self._put_back(line)
        else:
            # The common case, made fast: the next one of the only line is the head.
            requests.remove_first()
            queue.heads.keys[queue.heads.first] = requests.keys[requests.first]
        return request

    def dismantle(self, page: int) -> Iterator[None]:
        """Removes everything, about ``page`` requests before each of the values that it yields."""
        for queue in self.shapes.values():
            for line in queue.lines.values():
                while line.requests.values:
                    del line.requests.values[-page:], line.requests.keys[-page:]
                    yield
        while self.requests:
            for _ in range(min(page, len(self.requests))):
                self._line_of.pop(self.requests.popitem()[0])
            yield

    def recheck(self, job_id: str, user_id: int) -> None:
        """Opens or closes the lines of a job and a user whose slots changed."""
        for line in [*self.lines_of_job.get(job_id, ()), *self.lines_of_user.get(user_id, ())]:
            if line.has_limit and line.is_open == self._is_held(line):
                self._take_out(line)
                self._put_back(line)

    def count_before(self, order: Key) -> int:
        """Returns how many requests are better placed in the queue."""
        lines = (line for queue in self.shapes.values() for line in queue.lines.values())
        return sum(line.requests.count_before(order) for line in lines)

    def _line_for(self, request: RequestView) -> Line:
        key = (tuple((g.count, g.slots, g.constraints) for g in request.groups), request.preemptible)
        queue = self.shapes.get(key)
        if queue is None:
            queue = self.shapes[key] = ShapeQueue(key, shape_of(request))
            self.changes += 1
        job_id = request.job_id if self._by_job or request.max_slots is not None else None
        user_id = request.user_id if self._by_user else None
        limits = (job_id, request.max_slots, user_id)
        line = queue.lines.get(limits)
        if line is None:
            line = queue.lines[limits] = Line(queue, *limits)
            if job_id is not None:
                self.lines_of_job.setdefault(job_id, {})[line] = None
            if user_id is not None:
                self.lines_of_user.setdefault(user_id, {})[line] = None
        return line

    def _take_out(self, line: Line) -> None:
        if line.requests and line.is_open:
            line.shape_queue.heads.remove(line.requests.keys[line.requests.first])

    def _put_back(self, line: Line) -> None:
        requests, queue = line.requests, line.shape_queue
        if requests:
            line.is_open = not (line.has_limit and self._is_held(line))
            if line.is_open:
                queue.heads.add(requests.keys[requests.first], line)
            return
        del queue.lines[line.job_id, line.max_slots, line.user_id]
        if not queue.lines:
            del self.shapes[queue.key]
            self.changes += 1
        if line.job_id is not None:
            _forget(self.lines_of_job, line.job_id, line)
        if line.user_id is not None:
            _forget(self.lines_of_user, line.user_id, line)


Owner = TypeVar("Owner", str, int)


def _forget(lines_of: dict[Owner, dict[Line, None]], owner: Owner, line: Line) -> None:
    lines = lines_of[owner]
    del lines[line]
    if not lines:
        del lines_of[owner]


def walk(
    queues: Collection[ShapeQueue], passed_over: Collection[ShapeQueue | Line]
) -> Iterator[tuple[RequestView, Line]]:
    """Yields the requests in order. A shape or line that its reader adds to ``passed_over`` is not read further."""
    heap: list[tuple[Key, int, Line, int]] = []
    for queue in queues:
        heads = queue.heads
        first = heads.first
        if first < len(heads.keys):
            line = heads.values[first]
            heap.append((heads.keys[first], first, line, line.requests.first))
    heapify(heap)
    while heap:
        _, head, line, place = heap[0]
        queue, requests = line.shape_queue, line.requests
        if queue not in passed_over:
            yield requests.values[place], line
        if queue in passed_over:
            heappop(heap)
            continue
        heads, following = queue.heads, head + 1
        is_first = place == requests.first
        place += 1
        if place < len(requests.keys) and line not in passed_over:
            heapreplace(heap, (requests.keys[place], head, line, place))
        else:
            heappop(heap)
        if is_first and following < len(heads.keys):
            other = heads.values[following]
            heappush(heap, (heads.keys[following], following, other, other.requests.first))
