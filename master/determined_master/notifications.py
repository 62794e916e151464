"""Notifications after a commit: they wake loops, long polls and event streams. Kept in memory, never queued.

A lost notification costs latency, never correctness: every subscriber also looks again after an interval.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

SEARCH = "search"
TRIALS = "trials"
TRIAL_STATES = "trial-states"
"""An experiment was paused, activated or stopped, and more of its trials have to follow than one transaction moves."""
JOBS = "jobs"
"""A job has a new priority, place or pool, and more of its allocations have to follow than one transaction moves."""
SEARCH_TASKS = "search-tasks"
"""The state of an experiment changed, so the task of its search may have to start or end."""
TASKS = "tasks"
"""Tasks other than trials: a task is new, stops, or has ended."""
ATTEMPTS = "attempts"
"""An attempt of a task ended, and has to be settled."""
AGENTS = "agents"
"""An agent disconnected, so its reconnect window began."""
DEPARTURES = "departures"
"""It became known, or changed, when an agent leaves."""
PROVIDERS = "providers"
"""A provider that looks beside its loop has seen a change."""
SCHEDULE = "schedule"
ALLOCATIONS = "allocations"
ENVIRONMENTS = "environments"
"""A container waits for a Python environment, or waits no more."""
DELETE = "delete"
RETENTION = "retention"
"""A checkpoint has to be deleted, or the policy of an experiment has to be applied."""
COLUMN_NAMES = "column-names"
"""A column exists that did not exist before."""
SHUTDOWN = "shutdown"
CLUSTER = "cluster"
"""Agents, slots or the queue changed."""
COLUMNS = "columns"
"""Values that lists show, filter and sort by changed."""
EVENTS = "events"
"""A new event was recorded."""
STREAMS = "streams"
"""The first stream into a task was opened, or its last one has ended."""
SESSIONS = "sessions"
"""A sign-in ended or may have ended; streams check theirs again."""
FEED = "feed"
"""The change feed has new entries."""


def agent(agent_id: str) -> str:
    """Topic: the desired state of this agent may have changed."""
    return f"agent:{agent_id}"


def ended_on(agent_id: str) -> str:
    """Topic: containers of this agent ended, which changes its desired state; it may learn so a little later."""
    return f"ended-on:{agent_id}"


def allocation(allocation_id: str) -> str:
    """Topic: this allocation changed, for example preemption was requested or a container started."""
    return f"allocation:{allocation_id}"


def logs(task_id: str) -> str:
    """Topic: this task has new log lines or has ended."""
    return f"logs:{task_id}"


def task(task_id: str) -> str:
    """Topic: the state of this task changed."""
    return f"task:{task_id}"


def experiment(experiment_id: int) -> str:
    """Topic: this experiment changed in more than its metrics and progress."""
    return f"experiment:{experiment_id}"


def metrics(experiment_id: int) -> str:
    """Topic: metrics or progress of this experiment changed."""
    return f"metrics:{experiment_id}"


def deleted(experiment_id: int) -> str:
    """Topic: this experiment was deleted."""
    return f"deleted:{experiment_id}"


class Notifications:
    """Publishes topics to subscribers within one event loop. Only the fact that a topic occurred is kept."""

    def __init__(self) -> None:
        self._subscribers: dict[str, set[Subscription]] = defaultdict(set)
        self.closing = False
        self.observers: list[Callable[[Collection[str]], None]] = []
        """Called with all published topics; must neither fail nor block."""

    def publish(self, topics: Collection[str]) -> None:
        """Wakes every subscriber of each topic."""
        for observer in self.observers:
            observer(topics)
        for topic in topics:
            for subscription in self._subscribers.get(topic, ()):
                subscription.wake()

    def has_subscribers(self, topic: str) -> bool:
        return topic in self._subscribers

    def close(self) -> None:
        """Wakes every subscriber for good: polls and streams answer and end."""
        self.closing = True
        for subscriptions in self._subscribers.values():
            for subscription in subscriptions:
                subscription.wake()

    @asynccontextmanager
    async def subscribe(self, *topics: str) -> AsyncIterator["Subscription"]:
        """Subscribes before the caller reads the database, so that no change between read and wait is missed."""
        subscription = Subscription(self)
        for topic in topics:
            self._subscribers[topic].add(subscription)
        try:
            yield subscription
        finally:
            for topic in topics:
                self._subscribers[topic].discard(subscription)
                if not self._subscribers[topic]:
                    del self._subscribers[topic]


class Subscription:
    """Waits for the next notification of its topics. One caller at a time waits.

    The loops of the master wait here several times for each trial: an event and a timeout of asyncio cost more than
    what they wait for.
    """

    def __init__(self, notifications: Notifications) -> None:
        self._notifications = notifications
        self._is_awake = False
        self._waiting: asyncio.Future[bool] | None = None

    def wake(self) -> None:
        """Wakes the waiting subscriber, with or without a notification; one that does not wait does not wait next."""
        self._is_awake = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(True)

    def forget(self) -> None:
        """Forgets the notifications so far."""
        self._is_awake = False

    async def wait(self, seconds: float) -> bool:
        """Returns True after a notification, False after ``seconds``, and at once while the master closes."""
        if not self._is_awake and not self._notifications.closing:
            loop = asyncio.get_running_loop()
            self._waiting = waiting = loop.create_future()
            timer = loop.call_later(seconds, _time_out, waiting)
            try:
                if not await waiting:
                    return False
            finally:
                timer.cancel()
                self._waiting = None
        self._is_awake = False
        return True


def _time_out(waiting: "asyncio.Future[bool]") -> None:
    if not waiting.done():
        waiting.set_result(False)
