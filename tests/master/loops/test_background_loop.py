"""A loop that is stopped during a tick."""

import asyncio

import pytest

from determined_master.loops import loop
from determined_master.notifications import Notifications


async def stopped(tick) -> asyncio.Task[None]:
    """Returns the task of a loop that was cancelled after ``tick`` had begun."""
    running = asyncio.create_task(loop.run("x", Notifications(), (), tick))
    await tick.begun.wait()
    running.cancel()
    return running


class Tick:
    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.how = ""

    async def __call__(self) -> None:
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.how = "cut off"
            raise
        self.how = "ended"


async def test_a_stopped_loop_ends_after_its_running_tick():
    tick = Tick()
    running = await stopped(tick)
    asyncio.get_running_loop().call_soon(tick.may_end.set)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tick.how == "ended"


async def test_a_tick_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "GRACE_SECONDS", 0.01)
    tick = Tick()
    running = await stopped(tick)
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert tick.how == "cut off"


async def test_a_loop_without_work_ends():
    calls: list[None] = []

    async def tick() -> None:
        calls.append(None)

    async with asyncio.timeout(60):
        await loop.run("x", Notifications(), (), tick, interval=0, has_work=lambda: len(calls) < 3)
    assert len(calls) == 3
