"""The queue of a pool, by shape: a shape that does not fit is passed over as a whole, however many wait in it."""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from operator import attrgetter
from typing import Any, TypeVar

from sortedcontainers import SortedKeyList

from determined_master.scheduling.shapes import Shape, shape_of
from determined_master.scheduling.view import RequestView

Key = tuple[Any, ...]
BY_ORDER = attrgetter("order")
BY_FIRST = attrgetter("first.order")


class QueueLine:
    """Requests of one shape that the same limits hold back. ``first``: the first of them. ``is_open``: the limits
    leave room for it; False before it is queued."""

    __slots__ = ("first", "has_limit", "is_open", "job_id", "max_slots", "requests", "shape_queue", "user_id")

    def __init__(
        self,
        shape_queue: "ShapeQueue",
        first: RequestView,
        job_id: str | None,
        max_slots: int | None,
        user_id: int | None,
    ) -> None:
        self.shape_queue = shape_queue
        self.job_id = job_id
        self.max_slots = max_slots
        self.user_id = user_id
        self.requests: SortedKeyList[RequestView, Key] = SortedKeyList(key=BY_ORDER)
        self.first = first
        self.is_open = False
        self.has_limit = max_slots is not None or user_id is not None


class ShapeQueue:
    """All requests of one shape. ``heads``: the open lines, by the order of their first requests."""

    __slots__ = ("heads", "is_impossible", "key", "lines", "shape", "usable")

    def __init__(self, key: Key, shape: Shape) -> None:
        self.key = key
        self.shape = shape
        self.lines: dict[Key, QueueLine] = {}
        self.heads: list[QueueLine] = []
        self.usable: frozenset[str] | None = None
        """Agents that it could use; None if not computed since the agents changed."""
        self.is_impossible = False
        """True if no agent of the pool could ever hold it; valid if ``usable`` is."""

    def has_between(self, low: Key, high: Key, waits: Callable[[RequestView, QueueLine], bool]) -> bool:
        """Returns whether a request with an order of at least ``low`` and less than ``high`` waits in an open line."""
        for line in self.heads:
            if any(waits(request, line) for request in line.requests.irange_key(low, high, (True, False))):
                return True
        return False


class RequestQueue(Mapping[str, RequestView]):
    """The requests by the ids of their allocations.

    ``by_job``: True keeps a line for each job even without a limit. ``is_held`` says of a line whether its limits hold
    it back.
    """

    def __init__(self, *, by_job: bool, by_user: bool, is_held: Callable[[QueueLine], bool]) -> None:
        self._by_job = by_job
        self._by_user = by_user
        self._is_held = is_held
        self._waiting: dict[str, tuple[RequestView, QueueLine]] = {}
        """One dictionary: each that grows beyond a power of two is copied at once, 100,000 entries in 2.5 ms."""
        self.shapes: dict[Key, ShapeQueue] = {}
        self.changes = 0
        """Counts how often a shape came or went."""
        self.lines_of_job: dict[str, dict[QueueLine, None]] = {}
        self.lines_of_user: dict[int, dict[QueueLine, None]] = {}

    def __getitem__(self, allocation_id: str) -> RequestView:
        return self._waiting[allocation_id][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, request: RequestView) -> None:
        line = self._line_for(request)
        self._waiting[request.allocation_id] = request, line
        self._take_out(line)
        line.requests.add(request)
        self._put_back(line)

    def add_all(self, requests: Collection[RequestView]) -> None:
        """Adds many requests in less time than one by one."""
        by_line: dict[QueueLine, list[RequestView]] = {}
        for request in requests:
            line = self._line_for(request)
            by_line.setdefault(line, []).append(request)
            self._waiting[request.allocation_id] = request, line
        heads: dict[ShapeQueue, list[QueueLine]] = {}
        for line, added in by_line.items():
            self._take_out(line)
            line.requests.update(added)
            line.first = line.requests[0]
            line.is_open = not (line.has_limit and self._is_held(line))
            if line.is_open:
                heads.setdefault(line.shape_queue, []).append(line)
        for queue, lines in heads.items():
            queue.heads.extend(lines)
            queue.heads.sort(key=BY_FIRST)

    def line_of(self, allocation_id: str) -> QueueLine:
        return self._waiting[allocation_id][1]

    def remove(self, allocation_id: str) -> RequestView:
        request, line = self._waiting.pop(allocation_id)
        requests = line.requests
        if line.first is not request:
            requests.remove(request)
        elif line.has_limit or len(line.shape_queue.lines) > 1 or len(requests) == 1:
            self._take_out(line)
            requests.pop(0)
            self._put_back(line)
        else:
            # The common case, made fast: the only line stays the head.
            requests.pop(0)
            line.first = requests[0]
        return request

    def dismantle(self, page: int) -> Iterator[None]:
        """Removes everything, about ``page`` requests before each of the values that it yields."""
        for queue in self.shapes.values():
            for line in queue.lines.values():
                while line.requests:
                    for _ in range(min(page, len(line.requests))):
                        line.requests.pop()
                    yield
        while self._waiting:
            for _ in range(min(page, len(self._waiting))):
                self._waiting.popitem()
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
        return sum(line.requests.bisect_key_left(order) for line in lines)

    def _line_for(self, request: RequestView) -> QueueLine:
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
            line = queue.lines[limits] = QueueLine(queue, request, *limits)
            if job_id is not None:
                self.lines_of_job.setdefault(job_id, {})[line] = None
            if user_id is not None:
                self.lines_of_user.setdefault(user_id, {})[line] = None
        return line

    def _take_out(self, line: QueueLine) -> None:
        """Due before the first request of a line changes."""
        if line.is_open:
            heads = line.shape_queue.heads
            del heads[bisect_left(heads, line.first.order, key=BY_FIRST)]

    def _put_back(self, line: QueueLine) -> None:
        queue = line.shape_queue
        if line.requests:
            line.first = line.requests[0]
            line.is_open = not (line.has_limit and self._is_held(line))
            if line.is_open:
                insort(queue.heads, line, key=BY_FIRST)
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


def _forget(lines_of: dict[Owner, dict[QueueLine, None]], owner: Owner, line: QueueLine) -> None:
    lines = lines_of[owner]
    del lines[line]
    if not lines:
        del lines_of[owner]


def walk(
    queues: Collection[ShapeQueue], passed_over: Collection[ShapeQueue | QueueLine]
) -> Iterator[tuple[RequestView, QueueLine]]:
    """Yields the requests in order. A shape or line that its reader adds to ``passed_over`` is not read further."""
    heap = [(head.first.order, 0, head, 0, head.first) for queue in queues for head in queue.heads[:1]]
    heapify(heap)
    while heap:
        _, number, line, place, request = heap[0]
        queue, requests = line.shape_queue, line.requests
        if queue not in passed_over:
            yield request, line
        if queue in passed_over:
            heappop(heap)
            continue
        place += 1
        if place < len(requests) and line not in passed_over:
            request = requests[place]
            heapreplace(heap, (request.order, number, line, place, request))
        else:
            heappop(heap)
        if place == 1 and number + 1 < len(queue.heads):
            other = queue.heads[number + 1]
            heappush(heap, (other.first.order, number + 1, other, 0, other.first))
