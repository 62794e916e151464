"""Background parts of the app, started in order and stopped in reverse."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial

from fastapi import FastAPI

from determined_master.loops.background import Loop, provider_loop, providers_of, work_loops
from determined_master.loops.lease import LeaseLoop
from determined_master.wiring.services import Services


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    async with AsyncExitStack() as stack:
        for part in (_database, _lease, _first_rows, _writer, _pages, _loops, _polls):
            await stack.enter_async_context(part(services))
        yield


@asynccontextmanager
async def _database(services: Services) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await services.database.close()
        if services.lease is not None:
            await asyncio.to_thread(services.lease.release)


@asynccontextmanager
async def _lease(services: Services) -> AsyncIterator[None]:
    if services.lease is None:
        yield
        return
    async with _loop(services, Loop("lease", LeaseLoop(services.lease).tick)):
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
async def _pages(services: Services) -> AsyncIterator[None]:
    await services.pages.origins.restore()
    try:
        yield
    finally:
        await services.pages.close()


@asynccontextmanager
async def _loops(services: Services) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for loop in work_loops(services):
            await stack.enter_async_context(_loop(services, loop))
        providers = providers_of(services)
        stack.push_async_callback(providers.close)
        await stack.enter_async_context(_loop(services, provider_loop(providers)))
        yield


@asynccontextmanager
async def _polls(services: Services) -> AsyncIterator[None]:
    """Closed first: waiting polls and streams answer and end before the other parts stop."""
    try:
        yield
    finally:
        services.notifications.close()


def _loop(services: Services, loop: Loop) -> AbstractAsyncContextManager[None]:
    return _running(loop.name, partial(loop.run, services.notifications))


@asynccontextmanager
async def _running(name: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
