"""Attempts of commands and other tasks: what runs again after a failure, an outage or a shutdown, and what does not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.clock import FixedClock
from tests.support.cluster import Cluster, FakeAgent, cluster
from tests.support.command_calls import attempt, launch, log, reaches, shown
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, Hello, SlotFacts
from determined.states import ContainerState, TaskKind, TaskState
from determined_master.allocations import repository as allocations
from determined_master.db.models import TaskRow
from determined_master.loops.deadlines import Deadlines
from determined_master.tasks import repository as tasks
from determined_master.tasks.service import PREEMPTION_TIMEOUT_SECONDS, NewTask


async def test_a_system_failure_starts_it_again_and_the_second_backs_off(tmp_path: Path):
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with cluster(tmp_path, clock) as one:
        agent = await one.join()
        command = await launch(one)
        lost = ContainerExit(kind="system", message="the agent failed")
        for run in (1, 2):
            wish = await attempt(agent, command, run)
            await agent.say(wish, ContainerState.TERMINATED, lost)

        async def backs_off() -> TaskRow | None:
            async with one.master.database.read() as session:
                row = await tasks.get(session, command)
                return row if row.failures == 2 else None

        row = await eventually(backs_off)
        assert (row.run_id, row.retry_at) == (2, clock.at + timedelta(seconds=1))
        assert (await shown(one, command))["state"] == "STATE_QUEUED"
        clock.at += timedelta(seconds=1)
        await attempt(agent, command, 3)
        assert [line for line in await log(one, command) if "was interrupted" in line][1] == (
            "the command was interrupted: the agent failed; it starts again in 1 s (interruption 2 of at most 5)"
        )


async def test_a_command_outlives_a_restart_of_the_master(tmp_path: Path):
    async with cluster(tmp_path) as one:
        agent = await one.join()
        running, waiting = await launch(one), await launch(one)
        wish = await attempt(agent, running)
        await agent.run(wish)
    async with cluster(tmp_path) as one:
        agent = FakeAgent(one, "one")
        reported = agent.truth(wish, ContainerState.RUNNING)
        await one.master.agents.welcome(Hello(agent_id="one", slots=[SlotFacts(id=0)], containers=[reported]))
        assert [each.allocation_id for each in await agent.wish()] == [f"{running}.1"]
        await agent.exit(wish)
        await reaches(one, running, "TERMINATED")
        await attempt(agent, waiting)


@pytest.mark.parametrize("path", ["one", "one/slots/0"])
async def test_a_disabled_agent_ends_a_command_that_has_begun(one: Cluster, path: str):
    agent = await one.join("one")
    command = await launch(one)
    wish = await attempt(agent, command)
    await agent.run(wish)
    await one.join("two")
    assert (await one.post(f"/api/v1/agents/{path}/disable", {})).status_code == 200
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    ended = await reaches(one, command, "TERMINATED")
    assert "agent one was disabled by admin; a command that has begun does not start again" in ended["exitStatus"]
    said = await log(one, command)
    assert said[-2].startswith("the command failed: ")
    assert said[-1].startswith("resources failed with non-zero exit code")
    async with one.master.database.read() as session:
        assert (await tasks.get(session, command)).run_id == 1


async def test_a_command_is_ended_by_the_fact_that_its_agent_is_disabled_and_not_by_the_text_of_the_reason(
    one: Cluster,
):
    agent = await one.join("one", slots=2)
    disabled, killed = await launch(one), await launch(one)
    wishes = [await attempt(agent, command) for command in (disabled, killed)]
    for wish in wishes:
        await agent.run(wish)
    async with one.master.database.write() as session:
        row = await allocations.live_of_task(session, killed)
        assert row is not None
        await one.master.allocations.kill(session, row, why="agent two was disabled by somebody")
    await agent.say(wishes[1], ContainerState.TERMINATED, ContainerExit(kind="killed"))
    wishes[1] = await attempt(agent, killed, 2)
    assert (await one.post("/api/v1/agents/one/disable", {})).status_code == 200
    async with one.master.database.write() as session:
        row = await allocations.live_of_task(session, disabled)
        assert row is not None
        await allocations.change(session, row, message="l'agent one a \u00e9t\u00e9 d\u00e9sactiv\u00e9")
    await agent.say(wishes[0], ContainerState.TERMINATED, ContainerExit(kind="killed"))
    ended = await reaches(one, disabled, "TERMINATED")
    assert "a command that has begun does not start again" in ended["exitStatus"]


async def test_a_command_that_has_not_begun_on_a_disabled_agent_runs_elsewhere(one: Cluster):
    agent = await one.join("one")
    command = await launch(one)
    wish = await attempt(agent, command)
    assert (await one.post("/api/v1/agents/one/disable", {})).status_code == 200
    other = await one.join("two")
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    await attempt(other, command, 2)


async def test_a_broken_task_does_not_stop_the_others(one: Cluster):
    agent = await one.join()
    broken = await launch(one)
    await reaches(one, broken, "STARTING")
    async with one.master.database.write() as session:
        await tasks.change(session, await tasks.get(session, broken), spec={"environment": None})
    wish = await attempt(agent, broken)
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="system", message="lost"))
    await attempt(agent, await launch(one))
    assert (await shown(one, broken))["state"] == "STATE_QUEUED"


async def test_other_kinds_of_tasks_run_again_after_they_failed(one: Cluster):
    """A clean-up of checkpoints may run twice."""
    agent = await one.join()
    command = await launch(one)
    wish = await attempt(agent, command)
    assert wish.spec is not None
    await agent.exit(wish)
    async with one.master.database.write() as session:
        new = NewTask(
            kind=TaskKind.CHECKPOINT_GC,
            user_id=1,
            owner="admin",
            description="clean up",
            spec=wish.spec,
            config={},
            slots=0,
            pool="default",
            priority=42,
        )
        cleanup = (await one.master.tasks.create(session, new)).id
    await agent.exit(await attempt(agent, cleanup), code=1)
    again = await attempt(agent, cleanup, 2)
    assert again.spec is not None
    assert again.spec.environment["DET_TASK_TYPE"] == "CHECKPOINT_GC"
    await agent.exit(again)

    async def completed() -> bool:
        async with one.master.database.read() as session:
            return (await tasks.get(session, cleanup)).state is TaskState.COMPLETED

    await eventually(completed)


async def test_a_cluster_that_shuts_down_ends_commands_soon_and_runs_them_at_the_next_start(tmp_path: Path):
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with cluster(tmp_path, clock) as one:
        agent = await one.join()
        command = await launch(one)
        wish = await attempt(agent, command)
        await agent.run(wish)
        assert (await one.post("/detent/drain", {})).status_code == 200
        assert (await agent.wish())[0].state == "running"
        clock.at += timedelta(seconds=PREEMPTION_TIMEOUT_SECONDS)
        await Deadlines(one.master.database, clock, one.master.allocations).tick()
        assert (await agent.wish())[0].state == "stopped"
        await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed"))
        assert (await shown(one, command))["state"] == "STATE_QUEUED"
    async with cluster(tmp_path, clock) as one:
        await attempt(await one.join(), command, 2)
