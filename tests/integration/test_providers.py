"""Pools with a provider: agents start when the queue needs them, and end when they are idle.

The provider's commands are `true` and `false`; the tests play the agents that they would start.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_preemption import run_attempt
from tests.support.agent_socket import agent_socket
from tests.support.clock import FixedClock
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.waiting import eventually

from determined.errors import Conflict
from determined.states import InstanceState
from determined_master.allocations import queue_repository
from determined_master.db.models import InstanceRow
from determined_master.events import repository as events
from determined_master.events.repository import Selection
from determined_master.events.sentences import sentence
from determined_master.experiments import repository as experiments
from determined_master.loops.providers import ProviderLoop
from determined_master.providers import repository
from determined_master.scheduling.plan import Part, Placement

S = InstanceState


def pools(**provider: Any) -> dict[str, Any]:
    values = {"type": "command", "launch": ["true"], "terminate": ["true"], "max_agents": 2, "idle_timeout": 0}
    return {"resource_pools": [{"pool_name": "default", "provider": values | provider}]}


async def instances(cluster: Cluster, *states: InstanceState, count: int = 1) -> list[InstanceRow]:
    """Waits until at least ``count`` instances are in one of these states, and returns them."""

    async def in_states() -> list[InstanceRow] | None:
        rows = [row for row in await all_instances(cluster) if row.state in states]
        return rows if len(rows) >= count else None

    return await eventually(in_states) or []


async def all_instances(cluster: Cluster) -> Sequence[InstanceRow]:
    names = {each.target_id for each in await recorded(cluster, "ordered")}
    async with cluster.master.database.read() as session:
        return [row for name in sorted(names) if (row := await repository.find(session, name)) is not None]


async def recorded(cluster: Cluster, kind: str) -> Sequence[Any]:
    async with cluster.master.database.read() as session:
        return await events.page(session, Selection(kind=kind, target_type="agent"), before=None, most=100)


async def reason(cluster: Cluster, experiment: int, word: str) -> str:
    """Waits until the experiment's reason for waiting holds ``word``."""

    async def text() -> str | None:
        first = (await cluster.get(f"/detent/experiments/{experiment}/why"))["first"]
        return first["reason"] if first and word in first["reason"] else None

    return str(await eventually(text))


async def test_agents_start_for_the_queue_and_end_when_it_is_empty(tmp_path: Path):
    async with open_cluster(tmp_path, **pools()) as cluster:
        queue = [await cluster.create() for _ in range(3)]
        rows = await instances(cluster, S.STARTING, count=2)
        answer = await reason(cluster, queue[2], "maximum")
        assert answer.startswith("pool 'default' has no agent yet; 2 agents are starting (since 20")
        assert answer.endswith("; the pool is at its maximum of 2 agents")
        agents = [await cluster.join(row.agent_id) for row in rows]
        await instances(cluster, S.RUNNING, count=2)
        done: set[str] = set()

        async def all_done() -> bool:
            for agent in agents:
                for desired in await agent.desired():
                    if desired.allocation_id not in done:
                        await agent.run(desired)
                        await agent.exit(desired)
                        done.add(desired.allocation_id)
            return len(done) == 3

        await eventually(all_done)
        await instances(cluster, S.ENDED, count=2)
        assert (await cluster.get("/api/v1/agents"))["agents"] == []
        assert len(await all_instances(cluster)) == 2
        (last, *_) = await recorded(cluster, "released")
        text = sentence(last.kind, last.actor, last.target_type, last.target_id, last.payload)
        assert text == f"agent {last.target_id} of pool default is being ended: nothing has needed it for 0 s"


async def test_a_failed_launch_is_named_in_the_reason_of_waiting_experiments(tmp_path: Path):
    fails = ["sh", "-c", "echo no quota left >&2; exit 3"]
    async with open_cluster(tmp_path, **pools(launch=fails)) as cluster:
        text = await reason(cluster, await cluster.create(), "failed")
        assert text.endswith("; the launch of an agent failed: the launch command failed (exit 3): no quota left")
        (row,) = await instances(cluster, S.ENDED)
        assert row.started_at is None


async def test_a_launch_command_that_hangs_is_killed_and_its_agent_terminated(tmp_path: Path):
    ends = ["sh", "-c", f"echo $0 >> {tmp_path}/ended", "{agent_id}"]
    hangs = pools(launch=["sleep", "600"], terminate=ends, command_timeout=1.5)
    async with open_cluster(tmp_path, **hangs) as cluster:
        await reason(cluster, await cluster.create(), "the launch command did not end within 1.5 s and was killed")
        rows = await instances(cluster, S.ENDED)
        assert rows[0].agent_id in (tmp_path / "ended").read_text().splitlines()


async def test_an_agent_that_does_not_register_is_given_up_and_refused_later(tmp_path: Path):
    async with open_cluster(tmp_path, **pools(start_timeout=0.3)) as cluster:
        await reason(cluster, await cluster.create(), "it did not register within 0.3 s")
        (row, *_) = await instances(cluster, S.ENDED)
        async with agent_socket(cluster, row.agent_id) as socket:
            refusal = await socket.answer()
        assert refusal["final"]
        assert refusal["reason"] == ("the provider of its pool has ended this agent: it did not register within 0.3 s")


async def test_an_agent_whose_slots_differ_from_slots_per_agent_is_named_in_its_event(tmp_path: Path):
    async with open_cluster(tmp_path, **pools(slots_per_agent=2, min_agents=1)) as cluster:
        (row,) = await instances(cluster, S.STARTING)
        await cluster.join(row.agent_id, slots=3)
        await instances(cluster, S.RUNNING)
        (event,) = await recorded(cluster, "started")
        assert event.payload["reason"] == "it has 3 slots, although slots_per_agent is 2"


async def test_an_agent_that_cannot_be_ended_counts_for_the_maximum_and_is_ended_later(tmp_path: Path):
    ends = ["sh", "-c", f"test -e {tmp_path}/may-end || (echo is busy >&2; exit 1)"]
    async with open_cluster(tmp_path, **pools(max_agents=1, terminate=ends)) as cluster:
        experiment = await cluster.create()
        (row,) = await instances(cluster, S.STARTING)
        agent = await cluster.join(row.agent_id)
        await agent.exit(await run_attempt(agent, experiment))
        await instances(cluster, S.ENDING)
        text = await reason(cluster, await cluster.create(), "cannot be ended")
        assert "the pool is at its maximum of 1 agent; an agent cannot be ended: the terminate command failed" in text
        assert "(exit 1): is busy" in text
        assert len(await all_instances(cluster)) == 1
        (tmp_path / "may-end").touch()
        await instances(cluster, S.ENDED)
        await instances(cluster, S.STARTING)


async def test_a_trial_that_no_agent_of_the_provider_could_hold_is_refused_without_agents(tmp_path: Path):
    async with open_cluster(tmp_path, **pools(slots_per_agent=2)) as cluster:
        config = CONFIG + "resources: {slots_per_trial: 5}\n"
        checked = (await cluster.post("/detent/config/check", {"config": config})).json()["diagnostics"]
        assert [(each["code"], each["severity"]) for each in checked] == [("E210", "error")]
        assert "all agents that pool 'default' could have together have 4" in checked[0]["message"]
        await cluster.create(CONFIG + "resources: {slots_per_trial: 4}\n")
        await instances(cluster, S.STARTING, count=2)


async def test_a_restarted_master_waits_for_starting_agents_and_ends_those_to_end(tmp_path: Path):
    """Starting agents are not started again, and agents that were to end are ended."""
    launched = ["sh", "-c", f"echo $0 >> {tmp_path}/launched", "{agent_id}"]
    blocked = pools(launch=launched, terminate=["false"], idle_timeout=0)
    async with open_cluster(tmp_path, **blocked) as cluster:
        experiment = await cluster.create()
        (row,) = await instances(cluster, S.STARTING)
        await eventually((tmp_path / "launched").exists)
        name = row.agent_id
    async with open_cluster(tmp_path, **blocked) as cluster:
        agent = await cluster.join(name)
        await agent.exit(await run_attempt(agent, experiment))
        await instances(cluster, S.ENDING)
    async with open_cluster(tmp_path, **pools(launch=launched)) as cluster:
        # An agent is ended by the settings that started it: `false` fails, whatever the present settings are.
        row = (await instances(cluster, S.ENDING))[0]
        await eventually(lambda: is_stuck(cluster, name))
        assert (tmp_path / "launched").read_text().split() == [name]


async def is_stuck(cluster: Cluster, name: str) -> bool:
    async with cluster.master.database.read() as session:
        return bool((await repository.get(session, name)).end_failure)


async def test_a_pool_removed_with_jobs_keeps_them_and_its_agents_end_when_they_are_idle(tmp_path: Path):
    async with open_cluster(tmp_path, **pools()) as cluster:
        first, second = await cluster.create(), await cluster.create()
        rows = await instances(cluster, S.STARTING, count=2)
        name = rows[0].agent_id
        agent = await cluster.join(name)
        desired = (await agent.wait_for_desired())[0]
        await agent.run(desired)
        await instances(cluster, S.RUNNING)
        running, waiting = (first, second) if desired.allocation_id.startswith(f"{first}.") else (second, first)
    async with open_cluster(tmp_path, resource_pools=[{"pool_name": "other"}], default_pool="other") as cluster:
        text = await reason(cluster, waiting, "not in the settings")
        assert text.startswith('resource pool "default" is not in the settings of the master any more')
        assert await cluster.state(running) == "STATE_RUNNING"
        await instances(cluster, S.ENDED)  # the one that was starting
        assert [row.agent_id for row in await instances(cluster, S.RUNNING)] == [name]


async def test_no_agent_ends_under_a_container_and_nothing_is_placed_on_one_that_ends(tmp_path: Path):
    """Of the two decisions, the one that is applied second is refused."""
    async with open_cluster(tmp_path, **pools(max_agents=1, terminate=["false"])) as cluster:
        experiment = await cluster.create()
        (row,) = await instances(cluster, S.STARTING)
        agent = await cluster.join(row.agent_id)
        (desired,) = await agent.wait_for_desired()
        await instances(cluster, S.RUNNING)
        await cluster.master.instances.end(row.agent_id, "it looked idle", is_idle=True)
        assert [each.state for each in await all_instances(cluster)] == [S.RUNNING]
        assert (await agent.desired())[0].container_id == desired.container_id
        await agent.run(desired)
        await agent.exit(desired)
        await instances(cluster, S.ENDING)
        second = await cluster.create()
        await reason(cluster, second, "cannot be ended")
        async with cluster.master.database.read() as session:
            job_id = (await experiments.get(session, second)).job_id
            _, pending = await queue_repository.first_pending(session, job_id=job_id, task_ids=[])
        assert pending is not None
        placement = Placement(pending.id, (Part(row.agent_id, (0,)),))
        with pytest.raises(Conflict, match=f"agent {row.agent_id} has left"):
            async with cluster.master.database.write() as session:
                await cluster.master.allocations.place(session, placement)
        assert await cluster.state(experiment) == "STATE_COMPLETED"


async def test_a_clock_that_jumps_ends_no_agent(tmp_path: Path):
    clock, elapsed = FixedClock(datetime.now(UTC)), 0.0
    settings = pools(idle_timeout=3600, start_timeout=3600)
    async with open_cluster(tmp_path, clock, **settings) as cluster:
        queue = [await cluster.create() for _ in range(2)]
        idle, late = [row.agent_id for row in await instances(cluster, S.STARTING, count=2)]
        agent = await cluster.join(idle)
        (desired,) = await agent.wait_for_desired()
        await agent.run(desired)
        for experiment in queue:
            if not desired.allocation_id.startswith(f"{experiment}."):
                await cluster.post(f"/api/v1/experiments/{experiment}/kill")
        await agent.exit(desired)
        await instances(cluster, S.RUNNING)
        master = cluster.master
        loop = ProviderLoop(
            master.database,
            master.settings.pools,
            master.providers,
            master.instances,
            master.managers.queue,
            is_draining=lambda: False,
            monotonic=lambda: elapsed,
        )

        async def states() -> dict[str, InstanceState]:
            await loop.tick()
            return {row.agent_id: row.state for row in await all_instances(cluster) if row.agent_id in (idle, late)}

        assert await states() == {idle: S.RUNNING, late: S.STARTING}
        for hours in (48, -96):
            clock.at += timedelta(hours=hours)
            assert await states() == {idle: S.RUNNING, late: S.STARTING}
        elapsed = 3601.0
        after_the_limits = await states()
        assert after_the_limits.keys() == {idle, late}
        assert set(after_the_limits.values()) <= {S.ENDING, S.ENDED}
        await loop.close()


async def test_the_pool_names_its_provider_and_its_bounds(tmp_path: Path):
    async with open_cluster(tmp_path, **pools(min_agents=1, slots_per_agent=4)) as cluster:
        (pool,) = (await cluster.get("/api/v1/resource-pools"))["resourcePools"]
        assert (pool["minAgents"], pool["maxAgents"], pool["slotsPerAgent"]) == (1, 2, 4)
        assert (pool["maxIdleAgentPeriod"], pool["maxAgentStartingPeriod"]) == (0, 300)
        await instances(cluster, S.STARTING)
        (overview,) = (await cluster.get("/detent/cluster/overview"))["pools"]
        assert (overview["name"], overview["provider"], overview["minAgents"], overview["maxAgents"]) == (
            "default",
            "command",
            1,
            2,
        )
        assert (overview["starting"], overview["ending"]) == (1, 0)
