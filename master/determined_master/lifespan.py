"""Background parts of the app, started in order and stopped in reverse."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from fastapi import FastAPI

from determined_master import notifications
from determined_master.loops.deadlines import Deadlines
from determined_master.loops.deletion import Deletion
from determined_master.loops.loop import run
from determined_master.loops.schedule import Schedule
from determined_master.loops.trials import TrialLoop
from determined_master.metric_series.series_packer import SeriesPacker
from determined_master.services import Services

PACKING_SECONDS = 5.0


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    async with AsyncExitStack() as stack:
        for part in (_database, _first_rows, _writer, _loops, _polls):
            await stack.enter_async_context(part(services))
        yield


@asynccontextmanager
async def _database(services: Services) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await services.database.close()


@asynccontextmanager
async def _first_rows(services: Services) -> AsyncIterator[None]:
    await services.begin()
    await services.agents.start_windows()
    yield


@asynccontextmanager
async def _writer(services: Services) -> AsyncIterator[None]:
    async with _running("group-writer", services.writer.run):
        yield


@asynccontextmanager
async def _loops(services: Services) -> AsyncIterator[None]:
    schedule = Schedule(services)
    deadlines = Deadlines(services.database, services.clock, services.allocations)
    deletion = Deletion(services)
    trials = TrialLoop(services.database, services.clock, services.trials)
    packing = SeriesPacker(services.database, lambda: services.writer.groups)
    loops: list[tuple[str, tuple[str, ...], Callable[[], Awaitable[float | None]]]] = [
        ("search", (notifications.SEARCH,), services.search.tick),
        ("trials", (notifications.TRIALS,), trials.tick),
        ("schedule", (notifications.SCHEDULE,), schedule.tick),
        ("deadlines", (notifications.ALLOCATIONS,), deadlines.tick),
        ("agents", (notifications.SCHEDULE,), services.agents.sweep),
        ("deletion", (notifications.DELETE,), deletion.tick),
        ("storage", (), services.storage.tick),
    ]
    async with AsyncExitStack() as stack:
        for name, topics, tick in loops:
            await stack.enter_async_context(_running(name, partial(run, name, services.notifications, topics, tick)))
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
