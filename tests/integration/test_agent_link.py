"""The link of agents: refused agents, replaced connections, and reports that are not true."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect
from tests.support.agent_socket import agent_socket
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import ReportedContainer, ReportedState, SlotFacts
from determined.states import ContainerState
from determined_master.agents import repository as agent_rows
from determined_master.agents.service import Agents, StoredReport
from determined_master.allocations import containers
from determined_master.allocations.containers import Containers
from determined_master.api import agent_link
from determined_master.db.models import ContainerRow
from determined_master.errors import StorageUnavailable
from determined_master.loops.agents import AgentLoop
from determined_master.providers import repository as instances


async def test_the_second_of_two_agents_with_one_id_is_refused_and_the_first_stays(cluster: Cluster):
    async with agent_socket(cluster, folder_id="f1", hostname="m1") as first:
        assert (await first.answer())["kind"] == "welcome"
        async with agent_socket(cluster, folder_id="f2", hostname="m2") as second:
            refusal = await second.answer()
        assert (refusal["kind"], refusal["final"]) == ("refuse", False)
        assert refusal["reason"] == "another agent on m1 is connected as one; give one of them another name with --id"
        assert cluster.master.registry.links["one"].folder_id == "f1"
    async with agent_socket(cluster, folder_id="f2") as second:
        assert (await second.answer())["kind"] == "welcome"


@pytest.mark.parametrize("folder_id", ["f1", ""], ids=["the same folder", "an earlier version"])
async def test_an_agent_that_connects_again_replaces_its_old_connection(cluster: Cluster, folder_id: str):
    async with agent_socket(cluster, folder_id="f1") as first:
        assert (await first.answer())["kind"] == "welcome"
        async with agent_socket(cluster, folder_id=folder_id) as second:
            assert (await second.answer())["kind"] == "welcome"
            while (answer := await first.answer()) != {"closed": 1012}:
                assert answer["kind"] == "wish"


@pytest.mark.parametrize("is_cut", [True, False], ids=["cut", "without an answer"])
async def test_an_agent_connects_again_though_its_old_connection_cannot_be_closed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, is_cut: bool
):
    """A killed agent, or one with another network, is back before the master has noticed its end."""

    async def fails(**_options: object) -> None:
        if is_cut:
            raise WebSocketDisconnect(1006)
        await asyncio.Event().wait()

    cut = AsyncMock(side_effect=fails)
    async with agent_socket(cluster, folder_id="f1") as first:
        assert (await first.answer())["kind"] == "welcome"
        monkeypatch.setattr(cluster.master.registry.links["one"].socket, "close", cut)
        async with agent_socket(cluster, folder_id="f1") as second:
            assert (await second.answer())["kind"] == "welcome"
            await eventually(lambda: cut.call_count == 1)
        await eventually(lambda: "one" not in cluster.master.registry.links)


async def test_a_connection_that_is_cut_before_its_welcome_leaves_no_link(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(WebSocket, "send_text", AsyncMock(side_effect=WebSocketDisconnect(1006)))
    async with agent_socket(cluster):
        await eventually(lambda: "one" not in cluster.master.registry.links)


@pytest.mark.parametrize("storage", [{}, {"type": "shared_fs", "host_path": "/mnt/shared", "storage_path": "runs"}])
async def test_an_agent_learns_the_clusters_own_storage_and_the_data_folder(tmp_path: Path, storage: dict[str, str]):
    async with open_cluster(tmp_path, checkpoint_storage=storage) as cluster, agent_socket(cluster) as socket:
        welcome = await socket.answer()
        data = cluster.master.settings.data
    assert welcome["data_folder"] == str(data)
    assert welcome["storage_folders"] == [str(data / "checkpoints"), *([storage["host_path"]] if storage else [])]


async def test_an_agent_of_a_removed_pool_is_refused_with_the_name_of_the_pool(cluster: Cluster):
    async with agent_socket(cluster, pool="gone") as socket:
        refusal = await socket.answer()
    assert refusal["final"]
    assert refusal["reason"].startswith('unknown resource pool "gone"')


async def test_an_agent_that_names_no_pool_joins_the_default_pool(tmp_path: Path):
    pools = [{"pool_name": "cpu"}, {"pool_name": "gpu"}]
    async with (
        open_cluster(tmp_path, resource_pools=pools, default_pool="gpu") as cluster,
        agent_socket(cluster, pool="") as socket,
    ):
        assert (await socket.answer())["kind"] == "welcome"
        agents = (await cluster.get("/api/v1/agents"))["agents"]
    assert [each["resourcePools"] for each in agents] == [["gpu"]]


async def test_a_reported_container_that_was_never_assigned_changes_nothing_and_is_not_desired(cluster: Cluster):
    agent = await cluster.join("real")
    experiment = await cluster.create()
    (desired,) = await agent.wait_for_desired()
    claims = [
        ReportedContainer(container_id="made-up", allocation_id=desired.allocation_id, state=ContainerState.TERMINATED),
        agent.report_of(desired, ContainerState.TERMINATED),
    ]
    async with agent_socket(cluster, "liar", containers=claims) as socket:
        assert (await socket.answer())["kind"] == "welcome"
        socket.send(ReportedState(containers=[claims[0].model_copy(update={"output_done": True})]).model_dump_json())
        message = await socket.answer()
        # The agent ends containers that are not desired (tests/agent/test_reconcile.py).
        assert message["containers"] == []
    assert [each.container_id for each in await agent.desired()] == [desired.container_id]
    await agent.run(desired)
    assert await cluster.state(experiment) == "STATE_RUNNING"


async def test_slots_that_vanish_while_they_are_used_stay_with_their_task_until_it_ends(tmp_path: Path):
    """The agent returns with fewer slots: its task goes on, and no new task gets the slot that is gone."""
    async with open_cluster(tmp_path) as cluster:
        agent = await cluster.join(slots=2)
        await cluster.create(CONFIG + "resources: {slots_per_trial: 2}\n")
        (desired,) = await agent.wait_for_desired()
        await agent.run(desired)
        report = agent.report_of(desired, ContainerState.RUNNING)
        async with agent_socket(cluster, "one", slots=[SlotFacts(id=0)], containers=[report]) as socket:
            assert (await socket.answer())["kind"] == "welcome"
            assert await cluster.state(1) == "STATE_RUNNING"
            await agent.exit(desired, 1)  # the loss of its device ended it
            second = await cluster.create(CONFIG + "resources: {slots_per_trial: 1}\n")

            async def placed() -> list[int] | None:
                placements = [each for each in await agent.desired() if each.allocation_id.startswith(f"{second}.")]
                return list(placements[0].spec.slots) if placements and placements[0].spec else None

            assert await eventually(placed) == [0]


async def test_changed_containers_of_a_report_are_stored_and_a_failed_one_with_the_next_report(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    agent = await cluster.join()
    await cluster.create(CONFIG)
    (desired,) = await agent.wait_for_desired()
    stored, lookups = StoredReport(), []
    news, observe = Containers.news, containers.observe

    async def looked_up(*arguments: Any) -> list[ReportedContainer]:
        lookups.append(arguments)
        return await news(*arguments)

    monkeypatch.setattr(Containers, "news", looked_up)

    async def report(state: ContainerState) -> bool:
        return await cluster.master.agents.on_report("one", [agent.report_of(desired, state)], stored=stored)

    async def stored_state() -> ContainerState:
        async with cluster.master.database.read() as session:
            row = await session.get(ContainerRow, desired.container_id)
            assert row is not None
            return row.state

    assert await report(ContainerState.STARTING)
    assert (await stored_state(), len(lookups)) == (ContainerState.STARTING, 1), (
        "the first report of a connection is looked up"
    )
    failing = AsyncMock(side_effect=RuntimeError("the row is bad"))
    monkeypatch.setattr(containers, "observe", failing)
    await report(ContainerState.RUNNING)
    assert (await stored_state(), len(lookups), failing.await_count) == (ContainerState.STARTING, 1, 1)
    monkeypatch.setattr(containers, "observe", observe)

    async def stored_after_all() -> bool:
        await report(ContainerState.RUNNING)
        return await stored_state() is ContainerState.RUNNING

    await eventually(stored_after_all)
    assert len(lookups) > 1
    assert not await report(ContainerState.RUNNING)


async def test_an_agent_whose_disconnect_could_not_be_stored_is_lost_after_its_reconnect_window(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    master = cluster.master
    loop = AgentLoop(master.database, master.clock, master.agents, master.registry, 0.0)
    with monkeypatch.context() as full_disk:
        async with agent_socket(cluster, "one") as socket:
            assert (await socket.answer())["kind"] == "welcome"
            full_disk.setattr(Agents, "disconnected", AsyncMock(side_effect=StorageUnavailable()))
    await loop.tick()
    await loop.tick()
    async with master.database.read() as session:
        row = await agent_rows.find(session, "one")
    assert row is not None
    assert row.lost


async def test_an_agent_that_returns_before_its_disconnect_was_stored_stays_connected(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    master = cluster.master
    with monkeypatch.context() as full_disk:
        async with agent_socket(cluster, "one") as socket:
            assert (await socket.answer())["kind"] == "welcome"
            full_disk.setattr(Agents, "disconnected", AsyncMock(side_effect=StorageUnavailable()))
    async with agent_socket(cluster, "one") as socket:
        assert (await socket.answer())["kind"] == "welcome"
        await AgentLoop(master.database, master.clock, master.agents, master.registry, 0.0).tick()
        async with master.database.read() as session:
            assert (await agent_rows.get(session, "one")).disconnected_at is None


async def test_a_hello_while_the_database_is_away_is_refused_for_now(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    away = StorageUnavailable(StorageUnavailable.AWAY)
    monkeypatch.setattr(instances, "ended", AsyncMock(side_effect=away))
    async with agent_socket(cluster, "one") as socket:
        answer = await socket.answer()
    assert answer == {"kind": "refuse", "reason": StorageUnavailable.AWAY, "final": False}


async def test_a_link_outlives_a_database_that_is_away(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    wishes = AsyncMock(side_effect=[StorageUnavailable(StorageUnavailable.AWAY), []])
    monkeypatch.setattr(agent_link, "desired_containers", wishes)
    monkeypatch.setattr(StorageUnavailable, "RETRY_SECONDS", 0)
    async with agent_socket(cluster, "one") as socket:
        assert (await socket.answer())["kind"] == "welcome"
        assert (await socket.answer())["kind"] == "wish"
