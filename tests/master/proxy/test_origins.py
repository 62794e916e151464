"""Open origins: their ports, addresses and ends."""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from tests.support.clock import FixedClock

from determined.errors import Conflict
from determined_master.proxy import origins as module
from determined_master.proxy import task_queries
from determined_master.proxy.addresses import Layout, Place
from determined_master.proxy.origins import Origin, Origins
from determined_master.proxy.task_pages import TaskPages
from determined_master.proxy.task_port import TaskPort

NOW = datetime(2026, 11, 28, tzinfo=UTC)
PLACE = Place("http", "127.0.0.1:8080")
CLUSTER = "http://127.0.0.1:8080"


class Ports:
    """Ports of a machine, of which some are taken."""

    def __init__(self, *taken: int) -> None:
        self.taken = set(taken)
        self.open: set[int] = set()

    async def listen(self, port: int) -> "Listening":
        if port in self.taken | self.open:
            raise OSError(errno.EADDRINUSE, "taken")
        self.open.add(port)
        return Listening(self, port)


class Listening:
    def __init__(self, ports: Ports, port: int) -> None:
        self.ports, self.port = ports, port

    async def close(self) -> None:
        self.ports.open.discard(self.port)


def origins_of(
    folder: Path, ports: Ports | None = None, layout: Layout = Layout(), clock: FixedClock | None = None
) -> Origins:
    created = Origins(layout, range(8100, 8103), clock or FixedClock(NOW), folder / "origins.json")
    created.listen = ports.listen if ports else None
    return created


async def opened(origins: Origins, name: str, port: int = 80, *, owner_id: int = 1) -> str:
    return await origins.open(TaskPort(name, port), owner_id, PLACE, CLUSTER)


async def test_each_port_of_a_task_has_a_port_of_its_own_and_keeps_it(tmp_path: Path):
    origins = origins_of(tmp_path, Ports(8101))
    first, second = await opened(origins, "a"), await opened(origins, "b", owner_id=2)
    assert {first, second} == {"http://localhost:8100", "http://localhost:8102"}
    assert await opened(origins, "a") == first
    found = origins.at_port(int(second[-4:]))
    assert found is not None
    assert found.service == TaskPort("b", 80)


async def test_beyond_their_share_an_owners_own_origin_makes_room(tmp_path: Path):
    origins = origins_of(tmp_path, Ports())
    first = await opened(origins, "a")
    others = await opened(origins, "b", owner_id=2)
    assert await opened(origins, "c") == first
    assert {each.service.task_id for each in origins} == {"b", "c"}
    assert others != first


async def test_an_origin_makes_room_for_another_owner_only_after_nobody_has_used_it_for_long(tmp_path: Path):
    clock = FixedClock(NOW)
    origins = origins_of(tmp_path, Ports(), clock=clock)
    addresses = []
    for owner_id, name in enumerate("abc"):
        clock.at = NOW + timedelta(seconds=owner_id)
        addresses.append(await opened(origins, name, owner_id=owner_id))
    with pytest.raises(Conflict, match="no port of 8100-8102 is free"):
        await opened(origins, "d", owner_id=4)
    clock.at += timedelta(seconds=module.REUSE_SECONDS)
    assert await opened(origins, "d", owner_id=4) == addresses[0]
    assert {each.service.task_id for each in origins} == {"b", "c", "d"}


async def test_no_free_port_is_said(tmp_path: Path):
    with pytest.raises(Conflict, match="no port of 8100-8102 is free"):
        await opened(origins_of(tmp_path, Ports(8100, 8101, 8102)), "a")


async def test_a_subdomain_is_found_by_its_label(tmp_path: Path):
    origins = origins_of(tmp_path, layout=Layout("tasks.example"))
    label = TaskPort("a", 80).label
    assert await opened(origins, "a") == f"http://{label}.tasks.example:8080"
    assert origins.at_label(label) is not None
    assert origins.at_label("80-other") is None


async def test_after_a_restart_the_origins_are_open_at_the_same_ports(tmp_path: Path):
    ports = Ports()
    before = origins_of(tmp_path, ports)
    taken, kept = await opened(before, "a"), await opened(before, "b", owner_id=2)
    await before.close_all()
    assert ports.open == set()
    after = origins_of(tmp_path, Ports(int(taken[-4:])))
    await after.restore()
    assert [(each.service.task_id, each.opened.listening_port) for each in after] == [("b", int(kept[-4:]))]
    assert await opened(after, "b", owner_id=2) == kept


@pytest.mark.parametrize("text", ["", "[", "[1]", '[{"task_id": 1}]', "{}"])
async def test_a_damaged_file_opens_nothing(tmp_path: Path, text: str):
    (tmp_path / "origins.json").write_text(text)
    origins = origins_of(tmp_path, Ports())
    await origins.restore()
    assert list(origins) == []


async def test_an_origin_is_due_after_its_task_has_ended_or_nobody_has_come(tmp_path: Path):
    clock = FixedClock(NOW)
    origins = origins_of(tmp_path, Ports(), clock=clock)
    address = await opened(origins, "ended")
    await opened(origins, "idle", owner_id=2)
    ended = origins.at_port(int(address[-4:]))
    assert ended is not None
    origins.note_ended(ended)
    clock.at = NOW + timedelta(seconds=module.ENDED_SECONDS + 1)
    assert origins.due() == [ended]
    await origins.close(ended)
    clock.at = NOW + timedelta(hours=module.IDLE_HOURS, seconds=1)
    assert [each.service.task_id for each in origins.due()] == ["idle"]


class Away:
    """Stands for the database and the network of a master, of which there is nothing to say."""

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        yield None

    async def close_idle(self) -> None:
        return


async def test_an_origin_that_is_opened_again_while_others_are_closed_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = FixedClock(NOW)
    origins = origins_of(tmp_path, Ports(), clock=clock)
    for owner_id, name in enumerate("ab"):
        await opened(origins, name, owner_id=owner_id)
    clock.at += timedelta(hours=module.IDLE_HOURS + 1)
    pages = TaskPages(Away(), None, Away(), origins, clock)
    close = origins.close

    async def ended(*_arguments: object) -> set[str]:
        return set()

    monkeypatch.setattr(task_queries, "ended", ended)

    async def opens_the_other(which: Origin) -> None:
        await close(which)
        if which.service.task_id == "a":
            await opened(origins, "b", owner_id=1)

    origins.close = opens_the_other
    await pages.tick()
    assert [each.service.task_id for each in origins] == ["b"]


async def test_an_error_that_is_not_of_the_port_is_said_instead_of_trying_all(tmp_path: Path):
    listen = AsyncMock(side_effect=FileNotFoundError(errno.ENOENT, "no certificate"))
    origins = origins_of(tmp_path)
    origins.listen = listen
    with pytest.raises(Conflict, match=r"cannot listen on port 810[0-2]: .*no certificate"):
        await opened(origins, "a")
    assert listen.await_count == 1
