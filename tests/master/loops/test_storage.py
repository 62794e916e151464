"""The loop of the storages: measures each time, writes only in doubt, and publishes changes."""

import os
from pathlib import Path

import pytest

from determined_master import notifications
from determined_master.clock import SystemClock
from determined_master.data_folder import storage_health
from determined_master.data_folder.storage_health import StorageHealth
from determined_master.loops.storage import TICK_SECONDS, StorageLoop
from determined_master.notifications import Notifications


@pytest.fixture
def health(tmp_path: Path) -> StorageHealth:
    return StorageHealth(tmp_path, [], SystemClock(), low_bytes=0)


async def test_a_tick_writes_nothing_while_the_last_write_succeeded(
    health: StorageHealth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_health, "PROBE_BELOW_BYTES", 0)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: pytest.fail("a write was tried"))
    assert await StorageLoop(health, Notifications()).tick() == TICK_SECONDS


async def test_a_tick_after_a_failed_write_publishes_the_failure_and_the_next_one_its_end(
    health: StorageHealth, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = Notifications()
    loop = StorageLoop(health, topics)
    published: list[set[str]] = []
    monkeypatch.setattr(topics, "publish", lambda changed: published.append(set(changed)))
    with monkeypatch.context() as full:
        full.setattr(storage_health, "_probe", lambda _folder: OSError(28, "No space left on device"))
        health.note_failure("no space")
        await loop.tick()
        assert (health.states[0].status, published) == ("full", [{notifications.CLUSTER}])
        await loop.tick()
        assert len(published) == 1, "nothing has changed"
    await loop.tick()
    assert (health.states[0].status, len(published)) == ("up", 2)
