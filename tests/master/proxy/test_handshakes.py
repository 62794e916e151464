"""Bounds on handshakes of strangers: how many are open, how many may fail in a minute, and who is preferred."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from determined.errors import TooManyRequests
from determined_master.proxy import handshakes as module
from determined_master.proxy.handshakes import Handshake, Handshakes

BEGIN = datetime(2026, 11, 28, tzinfo=UTC)


class Door:
    """Handshakes with a clock of their own. ``ended``: addresses whose handshake lost its place."""

    def __init__(self) -> None:
        self.handshakes = Handshakes()
        self.now = BEGIN
        self.ended: list[str] = []
        self._stack = ExitStack()

    def open(self, address: str, task: str = "t") -> Handshake:
        end: Callable[[], None] = lambda: self.ended.append(address)  # noqa: E731
        return self._stack.enter_context(self.handshakes.begin(task, address, lambda: self.now, end))

    def fail(self, address: str, times: int = 1, task: str = "t") -> None:
        for _ in range(times):
            with self.handshakes.begin(task, address, lambda: self.now, lambda: None):
                pass

    def admit(self, address: str, task: str = "t") -> None:
        with self.handshakes.begin(task, address, lambda: self.now, lambda: None) as handshake:
            self.handshakes.admit(handshake)


def test_an_address_that_fails_too_often_waits_a_minute_and_others_do_not():
    door = Door()
    door.fail("eve", module.MAX_FAILURES_OF_ADDRESS)
    with pytest.raises(TooManyRequests, match=r"30 SSH connections from eve showed no key .* `det ssh-config`"):
        door.open("eve")
    door.fail("ada")
    door.now += module.WINDOW - timedelta(seconds=1)
    with pytest.raises(TooManyRequests):
        door.open("eve", "other task")
    door.now += timedelta(seconds=1)
    door.fail("eve")


def test_a_task_that_is_attacked_refuses_strangers_and_takes_addresses_that_it_knows():
    door = Door()
    door.admit("ada")
    for number in range(module.MAX_FAILURES_OF_TASK):
        door.fail(f"eve{number}")
    with pytest.raises(TooManyRequests, match="at task t"):
        door.open("bob")
    door.admit("ada")
    door.fail("bob", task="another")


def test_a_master_that_is_attacked_refuses_strangers_everywhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_FAILURES", 10)
    door = Door()
    door.admit("ada")
    for number in range(10):
        door.fail(f"eve{number}", task=f"t{number}")
    with pytest.raises(TooManyRequests, match="at this master"):
        door.open("bob", "new")
    door.admit("ada")


def test_admitted_handshakes_neither_fail_nor_take_a_place():
    door = Door()
    for _ in range(module.MAX_FAILURES_OF_ADDRESS + 1):
        door.admit("ada")
    for number in range(module.MAX_OPEN_OF_TASK + 1):
        door.handshakes.admit(door.open(f"bob{number}"))
    assert (door.handshakes.open, door.ended) == (0, [])


def test_the_oldest_stranger_loses_its_place_to_a_newer_one():
    door = Door()
    door.admit("ada")
    door.open("ada")
    for number in range(module.MAX_OPEN_OF_TASK):
        door.open(f"eve{number}")
    assert door.ended == ["eve0"]
    door.open("bob")
    assert door.ended == ["eve0", "eve1"]
    assert door.handshakes.open == module.MAX_OPEN_OF_TASK


def test_handshakes_of_all_tasks_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_OPEN", 3)
    door = Door()
    for number in range(4):
        door.open(f"eve{number}", f"t{number}")
    assert door.ended == ["eve0"]


def test_addresses_and_known_ones_are_forgotten_beyond_a_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_ADDRESSES", 6)
    monkeypatch.setattr(module, "MAX_KNOWN", 1)
    door = Door()
    door.admit("ada")
    door.admit("bob")
    door.fail("eve", module.MAX_FAILURES_OF_ADDRESS)
    for number in range(4):
        door.fail(f"other{number}", task=f"t{number}")
    door.fail("eve")
    for number in range(module.MAX_FAILURES_OF_TASK - 1):
        door.fail(f"many{number}")
    with pytest.raises(TooManyRequests, match="at task t"):
        door.open("ada")
    door.admit("bob")
