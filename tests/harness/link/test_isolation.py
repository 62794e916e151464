"""``Isolation`` of failing items in a loop: logged once, retried after growing waits."""

import asyncio
import logging

import pytest

from determined.link.isolation import FORGET_SECONDS, MAX_BACKOFF_SECONDS, Isolation, SharedFailure

logger = logging.getLogger("test.isolation")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fails(text: str = "bad row"):
    def work() -> None:
        raise ValueError(text)

    return work


def works() -> None:
    pass


def test_a_failed_item_is_retried_after_growing_waits_and_others_run() -> None:
    clock = Clock()
    items = Isolation("things", logger, clock)
    waits = []
    for _ in range(8):
        assert not items.run_now("thing", 1, fails())
        assert not items.run_now("thing", 1, works)
        assert items.run_now("thing", 2, works)
        wait = items.seconds_left()
        assert wait is not None
        waits.append(wait)
        clock.now += wait
    assert waits == [1, 2, 4, 8, 16, 32, MAX_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS]
    assert items.run_now("thing", 1, works)
    assert items.seconds_left() is None
    items.run_now("thing", 1, fails())
    assert items.seconds_left() == 1


def test_a_traceback_is_logged_once_and_again_for_another_error(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    items = Isolation("things", logger, clock)
    for text in ("one", "one", "one", "two", "two"):
        items.run_now("thing", 1, fails(text))
        clock.now += MAX_BACKOFF_SECONDS
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["one", "two"]
    assert "loop things: thing 1 failed" in caplog.messages[0]


def test_soonest_returns_the_shortest_wait_and_forgets_old_failures() -> None:
    clock = Clock()
    items = Isolation("things", logger, clock)
    assert items.soonest(None) is None
    assert items.soonest(None, 5.0) == 5.0
    items.run_now("thing", 1, fails())
    assert items.soonest(None, 5.0) == 1.0
    clock.now += FORGET_SECONDS + 2
    assert items.soonest(5.0) == 5.0
    items.run_now("thing", 1, fails())
    assert items.soonest(5.0) == 1.0, "its back-off begins anew"


async def test_a_cancellation_is_raised_and_is_no_failure() -> None:
    items = Isolation("things", logger)

    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await items.run("thing", 1, work)
    assert items.is_due("thing", 1)


def test_a_shared_failure_is_raised_and_delays_no_item() -> None:
    items = Isolation("things", logger, Clock())

    def full() -> None:
        raise SharedFailure("the disk is full")

    with pytest.raises(SharedFailure):
        items.run_now("thing", 1, full)
    assert items.seconds_left() is None
    assert items.run_now("thing", 1, works)
