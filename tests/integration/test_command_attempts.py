"""Attempts of commands and other tasks: restarts after failures, outages and shutdowns."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.clock import FixedClock
from tests.support.cluster import Cluster, FakeAgent, open_cluster
from tests.support.command_calls import attempt, get_command, launch, log, wait_for_state
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, Hello, SlotFacts
from determined.states import ContainerState, TaskKind, TaskState
from determined_master.allocations import repository as allocations
from determined_master.db.models import TaskRow
from determined_master.loops.deadlines import Deadlines
from determined_master.tasks import repository as tasks
from determined_master.tasks.service import PREEMPTION_TIMEOUT_SECONDS, NewTask


async def test_a_command_restarts_after_a_system_failure_and_backs_off_after_the_second(tmp_path: Path):
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with open_cluster(tmp_path, clock) as cluster:
        agent = await cluster.join()
        command = await launch(cluster)
        lost = ContainerExit(kind="system", message="the agent failed")
        for run in (1, 2):
            desired = await attempt(agent, command, run)
            await agent.send_report(desired, ContainerState.TERMINATED, lost)

        async def backs_off() -> TaskRow | None:
            async with cluster.master.database.read() as session:
                row = await tasks.get(session, command)
                return row if row.failures == 2 else None

        row = await eventually(backs_off)
        assert (row.run_id, row.retry_at) == (2, clock.at + timedelta(seconds=1))
        assert (await get_command(cluster, command))["state"] == "STATE_QUEUED"
        clock.at += timedelta(seconds=1)
        await attempt(agent, command, 3)
        assert [line for line in await log(cluster, command) if "was interrupted" in line][1] == (
            "the command was interrupted: the agent failed; it starts again in 1 s (interruption 2 of at most 5)"
        )


async def test_a_command_outlives_a_restart_of_the_master(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        agent = await cluster.join()
        running, waiting = await launch(cluster), await launch(cluster)
        desired = await attempt(agent, running)
        await agent.run(desired)
    async with open_cluster(tmp_path) as cluster:
        agent = FakeAgent(cluster, "one")
        reported = agent.report_of(desired, ContainerState.RUNNING)
        await cluster.master.agents.welcome(Hello(agent_id="one", slots=[SlotFacts(id=0)], containers=[reported]))
        assert [each.allocation_id for each in await agent.desired()] == [f"{running}.1"]
        await agent.exit(desired)
        await wait_for_state(cluster, running, "TERMINATED")
        await attempt(agent, waiting)


@pytest.mark.parametrize("path", ["one", "one/slots/0"])
async def test_a_disabled_agent_ends_a_command_that_has_begun(cluster: Cluster, path: str):
    agent = await cluster.join("one")
    command = await launch(cluster)
    desired = await attempt(agent, command)
    await agent.run(desired)
    await cluster.join("two")
    assert (await cluster.post(f"/api/v1/agents/{path}/disable", {})).status_code == 200
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    ended = await wait_for_state(cluster, command, "TERMINATED")
    assert "agent one was disabled by admin; a command that has begun does not start again" in ended["exitStatus"]
    lines = await log(cluster, command)
    assert lines[-2].startswith("the command failed: ")
    assert lines[-1].startswith("resources failed with non-zero exit code")
    async with cluster.master.database.read() as session:
        assert (await tasks.get(session, command)).run_id == 1


async def test_a_command_ends_because_its_agent_is_disabled_and_not_because_of_the_text_of_the_reason(
    cluster: Cluster,
):
    agent = await cluster.join("one", slots=2)
    disabled, killed = await launch(cluster), await launch(cluster)
    containers = [await attempt(agent, command) for command in (disabled, killed)]
    for desired in containers:
        await agent.run(desired)
    async with cluster.master.database.write() as session:
        row = await allocations.live_of_task(session, killed)
        assert row is not None
        await cluster.master.allocations.kill(session, row, why="agent two was disabled by somebody")
    await agent.send_report(containers[1], ContainerState.TERMINATED, ContainerExit(kind="killed"))
    containers[1] = await attempt(agent, killed, 2)
    assert (await cluster.post("/api/v1/agents/one/disable", {})).status_code == 200
    async with cluster.master.database.write() as session:
        row = await allocations.live_of_task(session, disabled)
        assert row is not None
        await allocations.change(session, row, message="l'agent one a \u00e9t\u00e9 d\u00e9sactiv\u00e9")
    await agent.send_report(containers[0], ContainerState.TERMINATED, ContainerExit(kind="killed"))
    ended = await wait_for_state(cluster, disabled, "TERMINATED")
    assert "a command that has begun does not start again" in ended["exitStatus"]


async def test_a_command_that_has_not_begun_on_a_disabled_agent_runs_elsewhere(cluster: Cluster):
    agent = await cluster.join("one")
    command = await launch(cluster)
    desired = await attempt(agent, command)
    assert (await cluster.post("/api/v1/agents/one/disable", {})).status_code == 200
    other = await cluster.join("two")
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    await attempt(other, command, 2)


async def test_a_broken_task_does_not_stop_the_others(cluster: Cluster):
    agent = await cluster.join()
    broken = await launch(cluster)
    await wait_for_state(cluster, broken, "STARTING")
    async with cluster.master.database.write() as session:
        await tasks.change(session, await tasks.get(session, broken), spec={"environment": None})
    desired = await attempt(agent, broken)
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="system", message="lost"))
    await attempt(agent, await launch(cluster))
    assert (await get_command(cluster, broken))["state"] == "STATE_QUEUED"


async def test_other_kinds_of_tasks_run_again_after_they_failed(cluster: Cluster):
    """A clean-up of checkpoints may run twice."""
    agent = await cluster.join()
    command = await launch(cluster)
    desired = await attempt(agent, command)
    assert desired.spec is not None
    await agent.exit(desired)
    async with cluster.master.database.write() as session:
        new = NewTask(
            kind=TaskKind.CHECKPOINT_GC,
            user_id=1,
            owner="admin",
            description="clean up",
            spec=desired.spec,
            config={},
            slots=0,
            pool="default",
            priority=42,
        )
        cleanup = (await cluster.master.tasks.create(session, new)).id
    await agent.exit(await attempt(agent, cleanup), code=1)
    again = await attempt(agent, cleanup, 2)
    assert again.spec is not None
    assert again.spec.environment["DET_TASK_TYPE"] == "CHECKPOINT_GC"
    await agent.exit(again)

    async def completed() -> bool:
        async with cluster.master.database.read() as session:
            return (await tasks.get(session, cleanup)).state is TaskState.COMPLETED

    await eventually(completed)


async def test_a_cluster_that_shuts_down_ends_commands_soon_and_runs_them_at_the_next_start(tmp_path: Path):
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with open_cluster(tmp_path, clock) as cluster:
        agent = await cluster.join()
        command = await launch(cluster)
        desired = await attempt(agent, command)
        await agent.run(desired)
        assert (await cluster.post("/detent/drain", {})).status_code == 200
        assert (await agent.desired())[0].state == "running"
        clock.at += timedelta(seconds=PREEMPTION_TIMEOUT_SECONDS)
        await Deadlines(cluster.master.database, clock, cluster.master.allocations).tick()
        assert (await agent.desired())[0].state == "stopped"
        await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed"))
        assert (await get_command(cluster, command))["state"] == "STATE_QUEUED"
    async with open_cluster(tmp_path, clock) as cluster:
        await attempt(await cluster.join(), command, 2)
