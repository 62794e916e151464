"""Hints: what a commit tells the loops and the waiting polls. A lost hint costs latency, never correctness."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

SEARCH = "search"
TRIALS = "trials"
SCHEDULE = "schedule"
ALLOCATIONS = "allocations"
DELETE = "delete"
COLUMN_NAMES = "column-names"
"""There is a column that was not there before."""
SHUTDOWN = "shutdown"
CLUSTER = "cluster"
"""What agents, slots or the queue look like changed."""
COLUMNS = "columns"
"""What lists show, filter and sort by has changed, or is to be looked at again."""
EVENTS = "events"
"""The list of what happened has grown."""
SESSIONS = "sessions"
"""A login has ended, or may have: whoever answers for longer looks again."""
FEED = "feed"
"""The feed of changes has grown."""


def agent(agent_id: str) -> str:
    """The wish for this agent may have changed."""
    return f"agent:{agent_id}"


def allocation(allocation_id: str) -> str:
    """Something about this allocation changed: preemption asked for, a container came up."""
    return f"allocation:{allocation_id}"


def logs(task_id: str) -> str:
    """New log lines of this task, or its end."""
    return f"logs:{task_id}"


def task(task_id: str) -> str:
    """What this task is doing changed; whoever gave it that name knows whose it is."""
    return f"task:{task_id}"


def experiment(experiment_id: int) -> str:
    """Something about this experiment changed, but not figures alone."""
    return f"experiment:{experiment_id}"


def metrics(experiment_id: int) -> str:
    """Its figures changed: reports, progress."""
    return f"metrics:{experiment_id}"


def deleted(experiment_id: int) -> str:
    """It is gone."""
    return f"deleted:{experiment_id}"


class Notifications:
    """Wakes everybody who listens to a topic. One event loop only; nothing is queued but the fact that it happened."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = defaultdict(set)
        self.closing = False
        self.taps: list[Callable[[Collection[str]], None]] = []
        """Called with all topics that are sent; must neither fail nor wait."""

    def send(self, topics: Collection[str]) -> None:
        for tap in self.taps:
            tap(topics)
        for topic in topics:
            for event in self._listeners.get(topic, ()):
                event.set()

    def close(self) -> None:
        """Wakes every listener for good: polls and streams answer and end."""
        self.closing = True
        for events in self._listeners.values():
            for event in events:
                event.set()

    @asynccontextmanager
    async def listen(self, *topics: str) -> AsyncIterator["Listener"]:
        """Registers first, so that nothing is missed between a look at the database and the wait."""
        event = asyncio.Event()
        for topic in topics:
            self._listeners[topic].add(event)
        try:
            yield Listener(event, self)
        finally:
            for topic in topics:
                self._listeners[topic].discard(event)
                if not self._listeners[topic]:
                    del self._listeners[topic]


class Listener:
    """One who waits for a hint."""

    def __init__(self, event: asyncio.Event, hints: Notifications) -> None:
        self._event = event
        self._hints = hints

    def wake(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """True when a hint came, False after ``seconds``. Returns at once while the master closes."""
        if self._hints.closing:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True
