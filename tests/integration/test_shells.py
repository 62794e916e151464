"""Shells over the API: launch, ready, list, keys, the limit of the cluster, and the end of those that are idle."""

import base64
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.clock import FixedClock
from tests.support.cluster import Cluster, FakeAgent, login, open_cluster
from tests.support.command_calls import FILE, attempt, log
from tests.support.waiting import eventually

from determined.config.command import KEEP_ALIVE
from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState
from determined_master.loops.idle_services import IdleServices
from determined_master.streams.uses import Uses

S = "/api/v1/shells"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
IDLE = {"idle_timeout": "30m"}


async def launched(cluster: Cluster, config: dict[str, Any] | None = None, **body: Any) -> dict[str, Any]:
    answer = await cluster.post(S, {"config": config or {}, **body})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def shell(cluster: Cluster, shell_id: str) -> dict[str, Any]:
    return dict((await cluster.get(f"{S}/{shell_id}"))["shell"])


async def running(cluster: Cluster, config: dict[str, Any] | None = None) -> tuple[str, FakeAgent, DesiredContainer]:
    """Launches a shell that becomes ready."""
    agent = await cluster.join()
    shell_id = (await launched(cluster, config))["shell"]["id"]
    desired = await attempt(agent, shell_id)
    await agent.run(desired)
    return shell_id, agent, desired


async def ends(cluster: Cluster, shell_id: str) -> dict[str, Any]:
    async def ended() -> dict[str, Any] | None:
        found = await shell(cluster, shell_id)
        return found if found["state"] in ("STATE_TERMINATING", "STATE_TERMINATED") else None

    return await eventually(ended)


def loop(cluster: Cluster, clock: FixedClock, uses: Uses | None = None) -> IdleServices:
    """Returns the loop as a master has it that starts now; with ``uses`` of its own as after a restart."""
    master = cluster.master
    return IdleServices(master.database, clock, master.settings, master.tasks, uses or master.streams.uses)


async def test_a_shell_runs_the_program_that_keeps_its_container_and_is_ready_once_it_runs(cluster: Cluster):
    agent = await cluster.join()
    answer = await launched(cluster, {"description": "look"}, files=[FILE])
    shell_id = answer["shell"]["id"]
    desired = await attempt(agent, shell_id)
    assert desired.spec is not None
    assert (desired.spec.entrypoint, desired.spec.task_type, desired.spec.slots) == (KEEP_ALIVE, "SHELL", [0])
    assert desired.spec.context is not None
    await agent.send_report(desired, ContainerState.STARTING)
    task = f"/api/v1/tasks/{shell_id}"
    assert (await cluster.get(task))["task"]["allocations"][0]["isReady"] is False
    assert (await shell(cluster, shell_id))["idleSince"] is None
    await agent.run(desired)
    found = (await cluster.get(task))["task"]
    assert (found["taskType"], found["allocations"][0]["isReady"]) == ("TASK_TYPE_SHELL", True)
    shown = await shell(cluster, shell_id)
    assert (shown["description"], shown["state"], shown["slots"]) == ("look", "STATE_RUNNING", 1)
    assert shown["idleSince"] is not None
    assert shown["agentUserGroup"]["user"] == "root"
    assert [each["id"] for each in (await cluster.get(S, users="admin"))["shells"]] == [shell_id]
    assert (await cluster.get("/api/v1/commands"))["commands"] == []
    assert (await cluster.client.get(f"/api/v1/commands/{shell_id}")).status_code == 404


async def test_a_shell_without_slots_and_with_another_priority_may_be_killed(cluster: Cluster):
    agent = await cluster.join()
    shell_id = (await launched(cluster, {"resources": {"slots": 0}}))["shell"]["id"]
    desired = await attempt(agent, shell_id)
    await agent.run(desired)
    assert (await cluster.post(f"{S}/{shell_id}/set_priority", {"priority": 60})).json()["shell"]["priority"] == 60
    assert (await cluster.post(f"{S}/{shell_id}/kill", {})).json()["shell"]["state"] == "STATE_TERMINATING"
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed"))

    async def ended() -> bool:
        return (await shell(cluster, shell_id))["exitStatus"] == "killed by a user"

    await eventually(ended)


async def test_what_has_no_effect_in_a_shell_is_answered_and_in_its_log(cluster: Cluster):
    answer = await launched(cluster, {"entrypoint": ["ls"], "work_dir": "/x"})
    assert sorted(note.partition(" has no effect")[0] for note in answer["notes"]) == ['"entrypoint"', '"work_dir"']
    assert set(answer["notes"]) <= set(await log(cluster, answer["shell"]["id"]))
    refused = await cluster.post(S, {"config": {"idle_timeout": "soon"}})
    assert refused.status_code == 400
    assert "the configuration of the shell is invalid" in refused.json()["error"]["error"]
    assert "not a duration: 'soon'" in refused.json()["error"]["error"]


async def test_the_idle_timeout_of_a_command_has_no_effect_and_is_named(cluster: Cluster):
    answer = await cluster.post("/api/v1/commands", {"config": {"entrypoint": ["ls"], **IDLE}})
    assert answer.json()["notes"] == [
        '"idle_timeout" has no effect in a command; a command runs until it ends or is killed'
    ]


@pytest.mark.parametrize(
    ("asked", "holds", "is_warned"), [(None, 600.0, False), ("5m", 300.0, False), ("2h", 600.0, True), (0, 600.0, True)]
)
async def test_the_limit_of_the_cluster_holds_for_every_shell(
    tmp_path: Path, asked: object, holds: float, is_warned: bool
):
    async with open_cluster(tmp_path, max_idle="10m") as cluster:
        answer = await launched(cluster, {} if asked is None else {"idle_timeout": asked})
        assert (answer["shell"]["idleTimeout"], answer["config"]["idle_timeout"]) == (holds, holds)
        assert bool(answer["notes"]) is is_warned
        if is_warned:
            assert "this cluster ends a shell that was idle for 10 minutes (max_idle)" in answer["notes"][0]
            assert answer["notes"][0] in await log(cluster, answer["shell"]["id"])


async def test_a_pool_may_have_a_limit_of_its_own(tmp_path: Path):
    pools = [{"pool_name": "default"}, {"pool_name": "gpu", "max_idle": "1h"}]
    async with open_cluster(tmp_path, max_idle=60, resource_pools=pools, launch_error=False) as cluster:
        for pool, holds in (("default", 60.0), ("gpu", 3600.0)):
            answer = await launched(cluster, {"idle_timeout": "2h", "resources": {"resource_pool": pool}})
            assert answer["shell"]["idleTimeout"] == holds


async def test_a_shell_takes_a_context_larger_than_other_bodies_may_be(cluster: Cluster):
    data = {
        **FILE,
        "path": "data.bin",
        "content": base64.b64encode(os.urandom(7 << 20)).decode(),
    }  # in text, over 8 MiB
    assert (await launched(cluster, files=[data]))["shell"]["state"] == "STATE_QUEUED"


async def test_only_the_owner_and_admins_see_the_private_key_of_a_shell(cluster: Cluster):
    cluster_admin = cluster.client.headers["Authorization"]
    await cluster.post("/api/v1/users", {"user": {"username": "ada"}, "password": "Correct-Horse-7"})
    await login(cluster.client, "ada")
    agent = await cluster.join()
    shell_id = (await launched(cluster))["shell"]["id"]
    desired = await attempt(agent, shell_id)

    async def seen(headers: dict[str, str]) -> set[str]:
        one = await cluster.client.get(f"{S}/{shell_id}", headers=headers)
        (listed,) = (await cluster.client.get(S, headers=headers)).json()["shells"]
        return {key.partition("\n")[0] for key in (one.json()["shell"]["privateKey"], listed["privateKey"])}

    key = "-----BEGIN OPENSSH PRIVATE KEY-----"
    assert await seen({}) == {key}
    assert await seen({"Authorization": cluster_admin}) == {key}
    assert await seen(cluster.as_task(desired.allocation_id)) == {""}
    await login(cluster.client, "determined")
    assert await seen({}) == {""}


async def test_an_idle_shell_ends_with_the_reason_in_its_log_and_its_description(tmp_path: Path):
    clock = FixedClock(NOON)
    async with open_cluster(tmp_path, clock) as cluster:
        shell_id, agent, desired = await running(cluster, IDLE)
        uses, idle = cluster.master.streams.uses, loop(cluster, clock)
        uses.begin(shell_id)
        clock.at += timedelta(hours=5)
        await idle.tick()
        assert (await shell(cluster, shell_id))["state"] == "STATE_RUNNING"
        assert (await shell(cluster, shell_id))["idleSince"] is None
        uses.end(shell_id)
        clock.at += timedelta(minutes=30, seconds=-1)
        await idle.tick()
        await idle.tick()
        assert (await shell(cluster, shell_id))["idleSince"] == "2030-01-01T17:00:00.000000Z"
        clock.at += timedelta(seconds=1)
        await idle.tick()
        assert (await ends(cluster, shell_id))["state"] == "STATE_TERMINATING"
        await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed"))

        async def described() -> bool:
            return (await shell(cluster, shell_id))["exitStatus"] == "idle for 30 minutes"

        await eventually(described)
        assert "the shell is ended: idle for 30 minutes, without a connection" in await log(cluster, shell_id)


async def test_a_stream_that_is_opened_at_the_deadline_keeps_the_shell(tmp_path: Path):
    clock = FixedClock(NOON)
    async with open_cluster(tmp_path, clock) as cluster:
        shell_id, _, _ = await running(cluster, IDLE)
        cluster.master.streams.uses.begin(shell_id)
        clock.at += timedelta(minutes=30)
        await loop(cluster, clock).tick()
        assert (await shell(cluster, shell_id))["state"] == "STATE_RUNNING"


async def test_a_shell_that_was_just_used_outlives_a_restart_of_the_master_and_ends_once_idle(tmp_path: Path):
    clock = FixedClock(NOON)
    async with open_cluster(tmp_path, clock) as cluster:
        shell_id, _, _ = await running(cluster, IDLE)
        cluster.master.streams.uses.begin(shell_id)
        clock.at += timedelta(hours=2)
        cluster.master.streams.uses.end(shell_id)
        await loop(cluster, clock).tick()
        clock.at += timedelta(minutes=1)
        restarted = loop(cluster, clock, Uses(clock, lambda: None))
        clock.at += timedelta(minutes=28)
        await restarted.tick()
        assert (await shell(cluster, shell_id))["state"] == "STATE_RUNNING"
        clock.at += timedelta(minutes=1)
        await restarted.tick()
        assert (await shell(cluster, shell_id))["state"] == "STATE_TERMINATING"


async def test_a_limit_that_is_new_holds_for_shells_that_were_started_before(tmp_path: Path):
    clock = FixedClock(NOON)
    async with open_cluster(tmp_path, clock) as cluster:
        shell_id, _, _ = await running(cluster)
        clock.at += timedelta(hours=9)
        await loop(cluster, clock).tick()
        assert (await shell(cluster, shell_id))["state"] == "STATE_RUNNING"
        master = cluster.master
        settings = master.settings.model_copy(update={"max_idle": 8 * 3600.0})
        limited = IdleServices(master.database, clock, settings, master.tasks, master.streams.uses)
        clock.at += timedelta(minutes=5)
        await limited.tick()
        assert (await ends(cluster, shell_id))["state"] == "STATE_TERMINATING"
