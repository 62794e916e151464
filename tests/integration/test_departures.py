"""Agents that leave at a known time: they are closed, their trials save, and what stays is ended in time.

A notice file in place of a cloud's says when agents leave; the tests play the agents.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.integration.test_preemption import is_preempted, leave, run_attempt
from tests.integration.test_providers import instances, pools, reason
from tests.support.clock import FixedClock
from tests.support.cluster import CONFIG, Cluster, FakeAgent, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState, InstanceState
from determined_master.agents import repository as agents
from determined_master.db.models import AllocationRow
from determined_master.loops.departures import DepartureLoop

START = datetime(2026, 11, 27, 12, tzinfo=UTC)
S = InstanceState
KILLED = ContainerExit(kind="killed", signal=9)


@dataclass
class Spot:
    """A cluster whose agents leave when the notice file says so."""

    cluster: Cluster
    clock: FixedClock
    notices: Path

    async def agent(self, slots: int = 1) -> FakeAgent:
        """Plays the next agent that the pool starts."""
        (row, *_) = await instances(self.cluster, S.STARTING)
        agent = await self.cluster.join(row.agent_id, slots)

        async def has_started() -> bool:
            return row.agent_id in {each.agent_id for each in await instances(self.cluster, S.RUNNING)}

        await eventually(has_started)
        return agent

    async def says(self, agent: FakeAgent, text: str) -> None:
        """Writes a notice and waits until it is known."""
        self.notices.write_text(f"{agent.id} {text}\n")
        known_before = await self._departure(agent)

        async def is_known() -> bool:
            return await self._departure(agent) != known_before

        await eventually(is_known)

    async def leaves_in(self, agent: FakeAgent, seconds: float, why: str = "spot notice") -> None:
        await self.says(agent, f"leaves {self.clock.at + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ} {why}")

    async def after(self, seconds: float) -> float | None:
        """Lets time pass, and the loop look."""
        self.clock.at += timedelta(seconds=seconds)
        master = self.cluster.master
        return await DepartureLoop(master.database, self.clock, master.agents, master.allocations).tick()

    async def _departure(self, agent: FakeAgent) -> Any:
        async with self.cluster.master.database.read() as session:
            row = await agents.find(session, agent.id)
        return None if row is None else (row.leaves_at, row.leaves_why, row.lost)

    async def is_closed(self, agent: FakeAgent) -> bool:
        async with self.cluster.master.database.read() as session:
            return (await agents.get(session, agent.id)).leaving

    async def log(self, experiment: int) -> str:
        (trial,) = (await self.cluster.get(f"/api/v1/experiments/{experiment}/trials"))["trials"]
        path = f"/api/v1/tasks/{trial['taskIds'][0]}/logs"
        return (await self.cluster.client.get(path, params={"limit": 100})).text

    async def restarts(self, experiment: int) -> int:
        (trial,) = (await self.cluster.get(f"/api/v1/experiments/{experiment}/trials"))["trials"]
        return int(trial["restarts"])


@asynccontextmanager
async def open_spot(folder: Path, at: datetime = START, **provider: Any) -> AsyncIterator[Spot]:
    notices, clock = folder / "notices", FixedClock(at)
    settings = pools(notice_file=str(notices), notice_interval=0.1, idle_timeout=3600, **provider)
    async with open_cluster(folder, clock, **settings) as cluster:
        yield Spot(cluster, clock, notices)


async def test_a_trial_saves_before_its_agent_leaves_and_goes_on_elsewhere(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create()
        agent = await spot.agent()
        desired = await run_attempt(agent, experiment)
        await spot.after(86_400)
        await spot.leaves_in(agent, 3600, "spot notice of the provider")
        assert not await is_preempted(spot.cluster, desired)
        assert await spot.after(2990) == 10.0  # 600 s before: no save of the experiment was measured yet
        assert not await is_preempted(spot.cluster, desired)
        await spot.after(10)
        assert await spot.is_closed(agent)
        log = await spot.log(experiment)
        assert f"agent {agent.id} leaves at 2026-11-28 13:00:00 UTC: spot notice of the provider" in log
        assert "it is killed if it is still running at 2026-11-28 13:00:00 UTC (its agent ends then)" in log
        await leave(spot.cluster, agent, desired)
        # A new agent is started in place of the one that leaves, which is ended at once.
        other = await spot.agent()
        again = await run_attempt(other, experiment, run=2)
        await instances(spot.cluster, S.ENDED)
        await other.exit(again)
        assert await spot.restarts(experiment) == 0


async def test_nothing_is_placed_on_an_agent_that_leaves_and_the_reason_says_so(tmp_path: Path):
    async with open_spot(tmp_path, max_agents=1, slots_per_agent=2) as spot:
        experiment = await spot.cluster.create()
        agent = await spot.agent(slots=2)
        await run_attempt(agent, experiment)
        await spot.after(86_400)
        await spot.leaves_in(agent, 500)
        await spot.after(0)
        waiting = await spot.cluster.create()
        text = await reason(spot.cluster, waiting, "leaves")
        assert text == (
            f"needs 1 slot; 0 of 2 free in pool 'default'; {agent.id} leaves at 12:08 UTC: spot notice; "
            "the pool is at its maximum of 1 agent"
        )
        why = await spot.cluster.get(f"/detent/experiments/{waiting}/why")
        assert why["first"]["changes"]["agents"] == []  # nobody can enable it


async def test_an_agent_whose_departure_is_put_off_is_opened_again_and_its_trial_goes_on(tmp_path: Path):
    async with open_spot(tmp_path, max_agents=1) as spot:
        experiment = await spot.cluster.create(CONFIG + "preemption_timeout: 100\n")
        agent = await spot.agent()
        desired = await run_attempt(agent, experiment)
        await spot.after(86_400)
        await spot.leaves_in(agent, 700)
        assert await spot.after(0) == 100.0
        assert not await spot.is_closed(agent)
        assert await spot.after(100) == 500.0
        assert await spot.is_closed(agent)
        await spot.leaves_in(agent, 7200)
        await spot.after(0)
        assert not await spot.is_closed(agent)
        await spot.leaves_in(agent, 500)
        await spot.after(0)
        assert await spot.is_closed(agent)
        spot.notices.write_text("")

        async def stays() -> bool:
            await spot.after(0)
            return not await spot.is_closed(agent)

        await eventually(stays)
        assert not await is_preempted(spot.cluster, desired)


async def test_a_trial_that_never_polls_is_ended_just_before_and_no_restart_is_counted(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create()
        agent = await spot.agent()
        desired = await run_attempt(agent, experiment)
        await spot.after(86_400)
        await spot.leaves_in(agent, 120)
        await spot.after(114)
        (still,) = await agent.desired()
        assert still.state == "running"
        await spot.after(1)
        (now,) = await agent.desired()
        assert now.state == "stopped"
        await agent.send_report(desired, ContainerState.TERMINATED, KILLED)
        other = await spot.agent()
        await run_attempt(other, experiment, run=2)
        assert await spot.restarts(experiment) == 0


async def test_a_command_runs_until_its_agent_leaves_and_is_ended_in_words(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        body = {"config": {"entrypoint": ["sleep", "9"], "resources": {"slots": 1}}}
        task = (await spot.cluster.post("/api/v1/commands", body)).json()["command"]["id"]
        agent = await spot.agent()
        (desired,) = await agent.wait_for_desired()
        await agent.run(desired)
        await spot.after(86_400)
        await spot.leaves_in(agent, 120)
        await spot.after(114)
        assert [each.state for each in await agent.desired()] == ["running"]
        await spot.after(1)
        assert [each.state for each in await agent.desired()] == ["stopped"]
        await agent.send_report(desired, ContainerState.TERMINATED, KILLED)

        async def failure() -> str:
            command = (await spot.cluster.get(f"/api/v1/commands/{task}"))["command"]
            return str(command.get("exitStatus", "")) if command["state"] == "STATE_TERMINATED" else ""

        text = await eventually(failure)
        assert f"ended because agent {agent.id} leaves at 2026-11-28 12:02:00 UTC: spot notice" in text
        assert "a command that has begun does not start again" in text


async def test_a_gang_saves_as_a_whole_when_one_of_its_agents_leaves(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create(CONFIG + "resources: {slots_per_trial: 2}\n")
        rows = await instances(spot.cluster, S.STARTING, count=2)
        both = [await spot.cluster.join(row.agent_id) for row in rows]
        await instances(spot.cluster, S.RUNNING, count=2)
        containers = [(await agent.wait_for_desired())[0] for agent in both]
        for agent, desired in zip(both, containers, strict=True):
            await agent.send_report(desired, ContainerState.RUNNING)
        path = f"/api/v1/allocations/{containers[0].allocation_id}/resources/{containers[0].container_id}/rendezvous"
        await spot.cluster.get(path)
        await spot.after(86_400)
        await spot.leaves_in(both[0], 30)
        await spot.after(0)
        assert await is_preempted(spot.cluster, containers[0])
        assert (await spot.is_closed(both[0]), await spot.is_closed(both[1])) == (True, False)
        assert await spot.restarts(experiment) == 0


async def test_a_trial_without_a_checkpoint_in_two_whole_limits_stops_with_that_sentence(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create()
        for run in (1, 2):
            agent = await spot.agent()
            desired = await run_attempt(agent, experiment, run)
            await spot.leaves_in(agent, 600, "time limit")
            await spot.after(595)
            await agent.send_report(desired, ContainerState.TERMINATED, KILLED)
        await eventually(lambda: has_ended(spot.cluster, experiment))
        log = await spot.log(experiment)
        assert (
            "2 attempts in a row had the whole time of their agents (10 min) and saved no checkpoint: save more often, "
            "or give the agents more time"
        ) in log
        assert await spot.restarts(experiment) == 0
        answer = await spot.cluster.post("/api/v1/experiments/continue", {"id": experiment})
        assert answer.status_code == 200, answer.text
        agent = await spot.agent()
        desired = await run_attempt(agent, experiment, 3)
        await agent.exit(desired)
        await eventually(lambda: has_completed(spot.cluster, experiment))


async def test_a_trial_that_completes_after_a_pause_in_its_second_whole_limit_is_completed(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create()
        for run in (1, 2):
            agent = await spot.agent()
            desired = await run_attempt(agent, experiment, run)
            await spot.leaves_in(agent, 600, "time limit")
            await spot.after(595)
            if run == 2:
                await spot.cluster.post(f"/api/v1/experiments/{experiment}/pause", {})
            await agent.send_report(desired, ContainerState.TERMINATED, KILLED)
        # An attempt that ends once the trial is active again would be the second in a row without a checkpoint.
        await eventually(lambda: are_settled(spot.cluster, experiment))
        await spot.cluster.post(f"/api/v1/experiments/{experiment}/activate", {})
        agent = await spot.agent()
        await agent.exit(await run_attempt(agent, experiment, 3))
        await eventually(lambda: has_completed(spot.cluster, experiment))


async def test_a_script_that_is_asked_by_a_signal_goes_on_after_any_number_of_whole_limits(tmp_path: Path):
    """It saves into a folder of its own, so no checkpoint of it is known."""
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create(CONFIG + "pause: {grace: 30}\n")
        for run in (1, 2, 3):
            agent = await spot.agent()
            desired = await run_attempt(agent, experiment, run)
            await spot.leaves_in(agent, 600, "time limit")
            await spot.after(560)
            await leave(spot.cluster, agent, desired)
        await run_attempt(await spot.agent(), experiment, 4)
        assert await spot.restarts(experiment) == 0


async def test_a_script_that_is_asked_by_a_signal_has_the_whole_of_its_grace_before_its_agent_leaves(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create(CONFIG + "pause: {grace: 15m}\n")
        agent = await spot.agent()
        desired = await run_attempt(agent, experiment)
        await spot.after(86_400)
        await spot.leaves_in(agent, 3600)
        await spot.after(3600 - 900 - 60 - 10)
        assert not await is_preempted(spot.cluster, desired)
        await spot.after(10)
        assert await is_preempted(spot.cluster, desired)
        assert await spot.is_closed(agent)


async def are_settled(cluster: Cluster, experiment: int) -> bool:
    """Returns whether all attempts of the experiment's trial so far have ended and are counted."""
    (trial,) = (await cluster.get(f"/api/v1/experiments/{experiment}/trials"))["trials"]
    statement = select(AllocationRow.settled).where(AllocationRow.task_id == trial["taskIds"][0])
    async with cluster.master.database.read() as session:
        return all(await session.scalars(statement))


async def has_ended(cluster: Cluster, experiment: int) -> bool:
    return await cluster.state(experiment) == "STATE_ERROR"


async def has_completed(cluster: Cluster, experiment: int) -> bool:
    return await cluster.state(experiment) == "STATE_COMPLETED"


async def test_an_agent_that_its_provider_says_is_gone_ends_with_that_reason(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create()
        agent = await spot.agent()
        await run_attempt(agent, experiment)
        await spot.after(60)
        await spot.says(agent, "gone the machine was preempted")
        text = f"agent {agent.id} was ended by its provider: the machine was preempted"

        async def is_logged() -> bool:
            return text in await spot.log(experiment)

        await eventually(is_logged)
        assert await spot.restarts(experiment) == 0
        waiting = await reason(spot.cluster, experiment, "starting")
        assert "failed" not in waiting


async def test_without_a_master_when_its_agent_leaves_a_trial_goes_on_later_and_no_restart_is_counted(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        experiment = await spot.cluster.create()
        agent = await spot.agent()
        await run_attempt(agent, experiment)
        await spot.after(60)
        await spot.leaves_in(agent, 3600, "time limit")
    spot.notices.write_text(f"{agent.id} gone its time is over\n")
    async with open_spot(tmp_path, START + timedelta(hours=2)) as spot:
        text = f"agent {agent.id} was ended by its provider: its time is over"

        async def is_logged() -> bool:
            return text in await spot.log(experiment)

        await eventually(is_logged)
        spot.notices.write_text("")
        await spot.after(60)  # the pause after a system failure
        other = await spot.agent()
        await run_attempt(other, experiment, run=2)
        assert await spot.restarts(experiment) == 0


async def test_agents_that_end_at_once_are_started_one_at_a_time_and_the_pool_says_why(tmp_path: Path):
    async with open_spot(tmp_path) as spot:
        await spot.cluster.create()
        agent = await spot.agent()
        await spot.says(agent, "gone its disk is full")
        waiting = await spot.cluster.create()
        text = await reason(spot.cluster, waiting, "failed")
        assert "the launch of an agent failed: it ended within 20 s of its start: its disk is full" in text
        (pool,) = (await spot.cluster.get("/detent/cluster/overview"))["pools"]
        assert pool["problem"] == "it ended within 20 s of its start: its disk is full"


async def test_a_notice_that_cannot_be_read_is_logged_with_its_line_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with open_spot(tmp_path) as spot:
        await spot.cluster.create()
        agent = await spot.agent()
        await spot.leaves_in(agent, 86_400)
        spot.notices.write_text(f"# from the cloud\n{agent.id} leaves tomorrow\n")
        said = f'{spot.notices}:2: "tomorrow" is no time with a time zone, such as 2026-11-27T12:30:00Z'
        await eventually(lambda: said in caplog.messages)
        (shown,) = (await spot.cluster.get("/api/v1/agents"))["agents"]
        assert (shown["leavesAt"], shown["leavesWhy"], shown["leaving"]) == (
            "2026-11-28T12:00:00.000000Z",
            "spot notice",
            False,
        )


async def test_a_notice_command_is_run_without_a_shell_and_its_failure_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    notices = tmp_path / "said"
    command = ["sh", "-c", f"cat {notices} || (echo no credentials >&2; exit 4)", "{pool}"]
    async with open_spot(tmp_path, notice_command=command) as spot:
        await spot.cluster.create()
        agent = await spot.agent()
        await eventually(lambda: "the notice command failed (exit 4): no credentials" in caplog.messages)
        notices.write_text(f"{agent.id} leaves 2026-11-28T12:00:00+02:00 maintenance\n")

        async def leaves_at() -> str:
            (shown,) = (await spot.cluster.get("/api/v1/agents"))["agents"]
            return str(shown["leavesAt"] or "")

        assert await eventually(leaves_at) == "2026-11-28T10:00:00.000000Z"
