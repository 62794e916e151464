"""Background parts of the app, started in order and stopped in reverse."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI

from determined_master import notifications
from determined_master.db.lease import CHECK_SECONDS, RETRY_SECONDS, DatabaseAway, DatabaseTaken
from determined_master.loops import job_followers
from determined_master.loops import schedule as schedules
from determined_master.loops.checkpoint_removal import CheckpointRemoval
from determined_master.loops.deadlines import Deadlines
from determined_master.loops.deletion import Deletion
from determined_master.loops.departures import DepartureLoop
from determined_master.loops.environment_builds import EnvironmentBuilds
from determined_master.loops.job_followers import JobFollowers
from determined_master.loops.loop import run
from determined_master.loops.providers import ProviderLoop
from determined_master.loops.retention import Retention
from determined_master.loops.schedule import ScheduleLoop
from determined_master.loops.search_tasks import SearchTasks
from determined_master.loops.tasks import TaskLoop
from determined_master.loops.trial_states import TrialStates
from determined_master.loops.trials import TrialLoop
from determined_master.metric_series.series_packer import SeriesPacker
from determined_master.wiring.services import Services

logger = logging.getLogger(__name__)

PACKING_SECONDS = 5.0


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    async with AsyncExitStack() as stack:
        for part in (_database, _lease, _first_rows, _writer, _loops, _polls):
            await stack.enter_async_context(part(services))
        yield


@asynccontextmanager
async def _database(services: Services) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await services.database.close()
        if services.lease is not None:
            await asyncio.to_thread(services.lease.give_back)


@asynccontextmanager
async def _lease(services: Services) -> AsyncIterator[None]:
    """Checks the lease of the database. Where another master has taken it, this one stops."""
    lease = services.lease
    if lease is None:
        yield
        return

    async def tick() -> float:
        try:
            await asyncio.to_thread(lease.check)
        except DatabaseTaken as error:
            logger.critical("this master stops: %s", error)
            signal.raise_signal(signal.SIGTERM)
        except DatabaseAway:
            return RETRY_SECONDS
        return CHECK_SECONDS

    async with _running("lease", partial(run, "lease", services.notifications, (), tick)):
        yield


@asynccontextmanager
async def _first_rows(services: Services) -> AsyncIterator[None]:
    await services.begin()
    await services.managers.adopt()
    try:
        yield
    finally:
        services.managers.close()


@asynccontextmanager
async def _writer(services: Services) -> AsyncIterator[None]:
    async with _running("group-writer", services.writer.run):
        yield


@asynccontextmanager
async def _loops(services: Services) -> AsyncIterator[None]:
    deadlines = Deadlines(services.database, services.clock, services.managers)
    departures = DepartureLoop(services.database, services.clock, services.agents, services.allocations)
    deletion = Deletion(services)
    retention = Retention(services)
    removal = CheckpointRemoval(services)
    builds = EnvironmentBuilds(services)
    searches = SearchTasks(services)
    schedule = ScheduleLoop(services.managers, is_draining=services.draining.is_set)
    trials = TrialLoop(services.database, services.clock, services.trials)
    trial_states = TrialStates(services.database, services.trials)
    tasks = TaskLoop(services.database, services.clock, services.tasks)
    providers = ProviderLoop(
        services.database,
        services.settings.pools,
        services.providers,
        services.instances,
        services.managers.queue,
        is_draining=services.draining.is_set,
    )
    packing = SeriesPacker(services.database, lambda: services.writer.groups)
    loops: list[tuple[str, tuple[str, ...], Callable[[], Coroutine[Any, Any, float | None]]]] = [
        ("search", (notifications.SEARCH,), services.search.tick),
        ("trials", (notifications.TRIALS, notifications.ATTEMPTS), trials.tick),
        ("trial states", (notifications.TRIAL_STATES,), trial_states.tick),
        ("tasks", (notifications.TASKS, notifications.ATTEMPTS), tasks.tick),
        ("schedule", (notifications.SCHEDULE,), schedule.tick),
        ("deadlines", (notifications.ALLOCATIONS,), deadlines.tick),
        ("agents", (notifications.AGENTS,), services.agents.sweep),
        ("departures", (notifications.DEPARTURES,), departures.tick),
        ("deletion", (notifications.DELETE,), deletion.tick),
        ("retention", (notifications.RETENTION,), retention.tick),
        ("checkpoint removal", (notifications.RETENTION, notifications.TASKS), removal.tick),
        (
            "environment builds",
            (notifications.ENVIRONMENTS, notifications.TASKS, notifications.AGENTS),
            builds.tick,
        ),
        ("search tasks", (notifications.SEARCH_TASKS, notifications.TASKS), searches.tick),
        ("storage", (), services.storage.tick),
    ]
    async with AsyncExitStack() as stack:
        for name, topics, tick in loops:
            await stack.enter_async_context(_running(name, partial(run, name, services.notifications, topics, tick)))
        stack.push_async_callback(providers.close)
        cluster = (notifications.SCHEDULE, notifications.CLUSTER, notifications.PROVIDERS)
        provide = partial(
            run,
            "providers",
            services.notifications,
            cluster,
            providers.tick,
            pause=0.2,
            has_work=lambda: providers.has_work,
        )
        await stack.enter_async_context(_running("providers", provide))
        # Metric reports are frequent, and each publishes a notification.
        await stack.enter_async_context(
            _running(
                "columns",
                lambda: run(
                    "columns", services.notifications, (notifications.COLUMNS,), services.indexer.catch_up, pause=1.0
                ),
            )
        )
        await stack.enter_async_context(
            _running(
                "packing", lambda: run("packing", services.notifications, (), packing.tick, interval=PACKING_SECONDS)
            )
        )
        followers = JobFollowers(services.database, services.managers)
        follow = partial(
            run,
            "job followers",
            services.notifications,
            (notifications.JOBS,),
            followers.tick,
            interval=job_followers.INTERVAL_SECONDS,
        )
        await stack.enter_async_context(_running("job followers", follow))
        check = partial(
            run, "schedule check", services.notifications, (), schedule.check, interval=schedules.CHECK_SECONDS
        )
        await stack.enter_async_context(_running("schedule check", check))
        yield


@asynccontextmanager
async def _polls(services: Services) -> AsyncIterator[None]:
    """Closed first: waiting polls and streams answer and end before the other parts stop."""
    try:
        yield
    finally:
        services.notifications.close()


@asynccontextmanager
async def _running(name: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
