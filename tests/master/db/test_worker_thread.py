"""A thread that makes calls for the event loop."""

import asyncio
import threading

import pytest

from determined_master.db.worker_thread import WorkerThread


@pytest.fixture
def thread() -> WorkerThread:
    return WorkerThread("worker")


async def test_calls_are_made_one_after_the_other_in_the_thread(thread: WorkerThread) -> None:
    created: list[tuple[int, str]] = []

    def call(number: int) -> int:
        created.append((number, threading.current_thread().name))
        return number

    answers = await asyncio.gather(*[thread.call(lambda number=number: call(number)) for number in range(5)])
    assert (answers, created) == ([0, 1, 2, 3, 4], [(number, "worker") for number in range(5)])
    thread.stop()


async def test_an_error_is_raised_where_the_call_is_awaited_and_the_thread_goes_on(thread: WorkerThread) -> None:
    with pytest.raises(ZeroDivisionError):
        await thread.call(lambda: 1 // 0)
    thread.post(lambda: 1 // 0)
    assert await thread.call(lambda: 6 * 7) == 42
    thread.stop()


async def test_a_cancelled_call_is_still_made(thread: WorkerThread) -> None:
    may_go, created = threading.Event(), threading.Event()
    thread.post(may_go.wait)
    calling = asyncio.create_task(thread.call(created.set))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    may_go.set()
    assert await thread.call(created.is_set)
    thread.stop()


async def test_a_stopped_thread_ends_after_all_earlier_calls(thread: WorkerThread) -> None:
    own = await thread.call(threading.current_thread)
    created = threading.Event()
    thread.post(created.set)
    thread.stop()
    await asyncio.to_thread(own.join, 60)
    assert (own.is_alive(), created.is_set()) == (False, True)
