"""What runs while the app lives, in order: each entered after the one above, left in reverse."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI

from determined_master import hints
from determined_master.allocations.service import Allocations
from determined_master.db.session import Database
from determined_master.loops import deletion
from determined_master.loops.loop import run
from determined_master.loops.schedule import Schedule
from determined_master.loops.trials import TrialLoop
from determined_master.master import Master
from determined_master.metrics.packing import Packing

PACKING_SECONDS = 5.0


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    master: Master = app.state.master
    async with AsyncExitStack() as stack:
        for part in (_database, _first_rows, _writer, _loops, _polls):
            await stack.enter_async_context(part(master))
        yield


@asynccontextmanager
async def _database(master: Master) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await master.database.close()


@asynccontextmanager
async def _first_rows(master: Master) -> AsyncIterator[None]:
    await master.begin()
    await master.agents.start_windows()
    yield


@asynccontextmanager
async def _writer(master: Master) -> AsyncIterator[None]:
    async with _running("group-writer", master.writer.run):
        yield


@asynccontextmanager
async def _loops(master: Master) -> AsyncIterator[None]:
    schedule = Schedule(master)
    trials = TrialLoop(master.database, master.clock, master.trials)
    packing = Packing(master.database, lambda: master.writer.groups)
    loops: list[tuple[str, tuple[str, ...], Callable[[], Awaitable[float | None]]]] = [
        ("search", (hints.SEARCH,), master.search.tick),
        ("trials", (hints.TRIALS,), trials.tick),
        ("schedule", (hints.SCHEDULE,), schedule.tick),
        ("deadlines", (hints.ALLOCATIONS,), lambda: _deadlines(master.database, master.allocations)),
        ("agents", (hints.SCHEDULE,), master.agents.sweep),
        ("deletion", (hints.DELETE,), lambda: deletion.tick(master)),
    ]
    async with AsyncExitStack() as stack:
        for name, topics, tick in loops:
            await stack.enter_async_context(
                _running(name, lambda n=name, t=topics, k=tick: run(n, master.hints, t, k))  # type: ignore[misc]
            )
        # Reports come by the thousand, and each sends its hint.
        await stack.enter_async_context(
            _running(
                "columns", lambda: run("columns", master.hints, (hints.COLUMNS,), master.columns.catch_up, pause=1.0)
            )
        )
        await stack.enter_async_context(
            _running("packing", lambda: run("packing", master.hints, (), packing.tick, interval=PACKING_SECONDS))
        )
        yield


@asynccontextmanager
async def _polls(master: Master) -> AsyncIterator[None]:
    """Left first: waiting polls and streams answer and end before anything else goes."""
    try:
        yield
    finally:
        master.hints.close()


@asynccontextmanager
async def _running(name: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _deadlines(database: Database, allocations: Allocations) -> float | None:
    async with database.write() as session:
        return await allocations.enforce_deadlines(session)
