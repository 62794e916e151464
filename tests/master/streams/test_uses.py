"""Which tasks streams use, and since when they do not."""

from datetime import UTC, datetime, timedelta

from tests.support.clock import FixedClock

from determined_master.streams import uses
from determined_master.streams.uses import Use, Uses

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Counted:
    def __init__(self) -> None:
        self.clock = FixedClock(NOON)
        self.changes = 0
        self.uses = Uses(self.clock, self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def pass_time(self, seconds: float) -> None:
        self.clock.at += timedelta(seconds=seconds)


def test_a_task_that_nobody_has_entered_has_no_use():
    assert Counted().uses.of("t") == Use(0, None)


def test_the_last_of_several_streams_ends_the_use_and_others_change_nothing():
    counted = Counted()
    counted.uses.begin("t")
    counted.uses.begin("t")
    assert (counted.uses.of("t"), counted.changes) == (Use(2, None), 1)
    counted.pass_time(10)
    counted.uses.end("t")
    assert (counted.uses.of("t"), counted.changes) == (Use(1, counted.clock.at), 1)
    counted.pass_time(10)
    counted.uses.end("t")
    assert (counted.uses.of("t"), counted.changes) == (Use(0, counted.clock.at), 2)
    assert counted.uses.of("other") == Use(0, None)


def test_an_end_in_the_future_of_a_corrected_clock_becomes_now_and_stays_there():
    counted = Counted()
    counted.uses.begin("t")
    counted.uses.end("t")
    counted.pass_time(-3600)
    corrected = counted.clock.at
    assert counted.uses.of("t").last_end == corrected
    counted.pass_time(60)
    assert counted.uses.of("t").last_end == corrected


def test_the_oldest_ends_are_dropped_so_that_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(uses, "MAX_ENDS", 2)
    counted = Counted()
    for task in ("a", "b", "a", "c"):
        counted.uses.begin(task)
        counted.uses.end(task)
    assert [task for task in "abc" if counted.uses.of(task).last_end] == ["a", "c"]
