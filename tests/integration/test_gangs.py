"""One trial on several agents: its placement, its rendezvous in rank order, and its common end."""

import asyncio
from pathlib import Path

import pytest
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, RankExit
from determined.states import ContainerState
from determined_master.agents.registry import Link
from determined_master.allocations import rendezvous_wait

WIDE = CONFIG + "resources: {slots_per_trial: 4}\nmax_restarts: 0\n"


async def rendezvous(cluster: Cluster, desired) -> dict:
    path = f"/api/v1/allocations/{desired.allocation_id}/resources/{desired.container_id}/rendezvous"
    return (await cluster.get(path))["rendezvousInfo"]


async def lines(cluster: Cluster) -> list[str]:
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    return [line for line in answer.text.splitlines() if line]


async def gang(cluster: Cluster, *addresses: str):
    agents = [await cluster.join(name, slots=2) for name in ("one", "two")]
    for agent, address in zip(agents, addresses, strict=False):
        agent.address = address
    experiment = await cluster.create(WIDE)
    containers = [(await agent.wait_for_desired())[0] for agent in agents]
    return experiment, agents, containers


async def test_each_container_of_a_gang_gets_rank_and_addresses(cluster: Cluster):
    _, agents, containers = await gang(cluster, "10.0.0.1", "10.0.0.2")
    assert [desired.spec.rank for desired in containers] == [0, 1]
    assert [desired.spec.slots for desired in containers] == [[0, 1], [0, 1]]
    ports = [desired.spec.environment["C10D_PORT"] for desired in containers]
    assert ports[0] == ports[1]
    await agents[1].send_report(containers[1], ContainerState.RUNNING)
    early = asyncio.create_task(rendezvous(cluster, containers[1]))
    await agents[0].send_report(containers[0], ContainerState.RUNNING)
    first = await rendezvous(cluster, containers[0])
    assert first == {"addresses": ["10.0.0.1", "10.0.0.2"], "rank": 0, "slots": [2, 2]}
    assert await early == first | {"rank": 1}


async def test_a_container_that_fails_ends_its_peers_and_is_named_as_the_cause(cluster: Cluster):
    experiment, agents, containers = await gang(cluster)
    for agent, desired in zip(agents, containers, strict=True):
        await agent.send_report(desired, ContainerState.RUNNING)
    await rendezvous(cluster, containers[0])
    exit_ = ContainerExit(
        kind="exited",
        code=137,
        message="rank 2 on node-b was killed by signal 9 (SIGKILL)",
        ranks=[RankExit(rank=2, code=137, signal=9, host="node-b", time=10.0)],
    )
    await agents[1].send_report(containers[1], ContainerState.TERMINATED, exit_)
    assert [desired.state for desired in await agents[0].desired()] == ["stopped"]
    late = ContainerExit(kind="exited", code=1, message="rank 0 lost it", ranks=[RankExit(rank=0, code=1, time=10.4)])
    await agents[0].send_report(containers[0], ContainerState.TERMINATED, late)

    async def ended() -> bool:
        return await cluster.state(experiment) == "STATE_ERROR"

    await eventually(ended)
    text = "\n".join(await lines(cluster))
    assert "rank 2 on node-b was killed by signal 9 (SIGKILL)" in text
    assert "rank 0 lost it" not in text
    (attempt,) = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
    assert (attempt["reason"], attempt["code"]) == ("errored", 137)
    assert attempt["message"].startswith("rank 2 on node-b")
    assert [(c["agentId"], c["ranks"][0]["rank"]) for c in attempt["containers"]] == [("one", 0), ("two", 2)]


async def test_a_container_that_its_machine_ends_makes_the_attempt_a_system_failure_with_its_cause(cluster: Cluster):
    _, agents, containers = await gang(cluster)
    for agent, desired in zip(agents, containers, strict=True):
        await agent.send_report(desired, ContainerState.RUNNING)
    gone = ContainerExit(kind="system", message="the machine was restarted")
    await agents[1].send_report(containers[1], ContainerState.TERMINATED, gone)
    await agents[0].send_report(containers[0], ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def first() -> dict | None:
        attempts = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
        return next((each for each in attempts if each["reason"]), None)

    attempt = await eventually(first)
    assert (attempt["reason"], attempt["message"]) == ("system", "the machine was restarted")


async def test_an_attempt_runs_until_all_its_containers_have_exited(cluster: Cluster):
    experiment, agents, containers = await gang(cluster)
    for agent, desired in zip(agents, containers, strict=True):
        await agent.send_report(desired, ContainerState.RUNNING)
    await rendezvous(cluster, containers[0])
    await agents[0].exit(containers[0])
    assert await cluster.state(experiment) == "STATE_RUNNING"
    assert [desired.state for desired in await agents[1].desired()] == ["running"]
    await agents[1].exit(containers[1])

    async def ended() -> bool:
        return await cluster.state(experiment) == "STATE_COMPLETED"

    await eventually(ended)


async def test_a_container_that_is_late_at_the_rendezvous_is_named_in_the_log(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rendezvous_wait, "LATE_SECONDS", 0.0)
    _, agents, containers = await gang(cluster)
    await agents[0].send_report(containers[0], ContainerState.RUNNING)
    waiting = asyncio.create_task(rendezvous(cluster, containers[0]))

    async def is_logged() -> bool:
        return any("waiting for container 1 on agent two (assigned)" in line for line in await lines(cluster))

    await eventually(is_logged)
    await agents[1].send_report(containers[1], ContainerState.RUNNING)
    async with asyncio.timeout(10):
        assert (await waiting)["rank"] == 0


async def test_peers_of_an_agent_on_the_masters_machine_get_the_masters_address(cluster: Cluster):
    _, agents, containers = await gang(cluster, "127.0.0.1", "10.0.0.2")
    for name, address in (("one", "127.0.0.1"), ("two", "10.0.0.9")):
        cluster.master.registry.add(Link(name, socket=None, master_seen_at=address))
    for agent, desired in zip(agents, containers, strict=True):
        await agent.send_report(desired, ContainerState.RUNNING)
    assert (await rendezvous(cluster, containers[1]))["addresses"] == ["10.0.0.9", "10.0.0.2"]


async def test_containers_get_the_clusters_network_interface(tmp_path: Path):
    async with open_cluster(tmp_path, dtrain_network_interface="ib0") as cluster:
        _, _, containers = await gang(cluster)
        assert {desired.spec.environment["DET_INTER_NODE_NETWORK_INTERFACE"] for desired in containers} == {"ib0"}


async def test_a_trial_with_more_slots_than_all_agents_have_is_refused(cluster: Cluster):
    await cluster.join("one", slots=2)
    answer = await cluster.post("/api/v1/experiments", {"config": WIDE, "activate": True})
    assert answer.status_code == 400
    assert "needs 4 slots, but the only agent of pool 'default' has 2" in answer.text
