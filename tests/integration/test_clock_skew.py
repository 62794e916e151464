"""Agents whose clock is hours off: their work goes on, durations are the master's, and a warning is shown."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.clock import FixedClock
from tests.support.cluster import Cluster, FakeAgent, open_cluster

from determined.link.messages import DesiredContainer, Hello, SlotFacts, SlotStatus
from determined_master.agents import repository as agent_rows
from determined_master.agents.service import StoredReport

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


async def join(cluster: Cluster, sent_at: datetime | None) -> FakeAgent:
    seconds = 0.0 if sent_at is None else sent_at.timestamp()
    await cluster.master.agents.welcome(Hello(agent_id="one", slots=[SlotFacts(id=0)], sent_at=seconds))
    return FakeAgent(cluster, "one")


async def warnings(cluster: Cluster) -> set[str]:
    """Returns the warnings on the cluster's page and in `det agent list`."""
    overview = (await cluster.get("/detent/cluster/overview"))["agents"][0]["warning"]
    return {overview, (await cluster.get("/api/v1/agents"))["agents"][0]["warning"]}


async def log(cluster: Cluster) -> list[dict[str, Any]]:
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    return [json.loads(line)["result"] for line in answer.text.splitlines()]


async def ship(cluster: Cluster, desired: DesiredContainer, start: int, text: str, at: datetime) -> None:
    assert desired.spec is not None
    body = {
        "container_id": desired.container_id,
        "allocation_id": desired.allocation_id,
        "task_id": desired.spec.task_id,
    }
    lines = [{"timestamp": at.timestamp(), "log": text}]
    answer = await cluster.client.post(
        "/detent/agents/one/output",
        json={**body, "start": start, "end": start + 1, "lines": lines},
        headers={"Authorization": f"Bearer {cluster.master.secrets.join_token}"},
    )
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("hours", "offset"), [(3, "3 h 0 min ahead of"), (-30, "1 d 6 h behind")])
async def test_durations_of_an_agent_whose_clock_is_off_are_the_masters(
    tmp_path: Path, hours: int, offset: str
) -> None:
    clock, off = FixedClock(NOW), timedelta(hours=hours)
    warning = f"the clock of agent one is {offset} the master's: times of its log lines and metrics are off by that"
    async with open_cluster(tmp_path, clock) as cluster:
        agent = await join(cluster, clock.now() + off)
        assert await warnings(cluster) == {warning}
        await cluster.create()
        (desired,) = await agent.wait_for_desired()
        clock.at += timedelta(seconds=60)
        await agent.run(desired)
        await ship(cluster, desired, 0, "first", clock.now() + off)
        await ship(cluster, desired, 1, "second, after the clock was set back", clock.now() - off)
        metrics = {"trial_id": 1, "trial_run_id": 1, "steps_completed": 1, "report_time": (NOW + off).isoformat()}
        body = {"group": "validation", "metrics": metrics | {"metrics": {"avg_metrics": {"loss": 0.5}}}}
        answer = await cluster.post("/api/v1/trials/1/metrics", body, **cluster.as_task(desired.allocation_id))
        assert answer.status_code == 200, answer.text
        clock.at += timedelta(seconds=100)
        await agent.exit(desired)
        status = await cluster.get("/detent/experiments/1/status")
        assert (status["waitedSeconds"], status["ranSeconds"]) == (60, 100)
        lines = await log(cluster)
        assert [line["log"].removesuffix("\n") for line in lines][:3] == [
            warning,
            "first",
            "second, after the clock was set back",
        ]
        assert lines[0]["level"] == "LOG_LEVEL_WARNING"
        best = (await cluster.get("/api/v1/trials/1"))["trial"]["bestValidation"]
        assert best["totalBatches"] == 1


async def test_a_clock_that_is_set_right_is_no_longer_warned_about(tmp_path: Path) -> None:
    clock = FixedClock(NOW)
    async with open_cluster(tmp_path, clock) as cluster:
        await join(cluster, NOW - timedelta(hours=2))
        assert "2 h 0 min behind" in str(await warnings(cluster))
        await cluster.master.agents.on_report("one", [], sent_at=NOW.timestamp() + 1)
        assert await warnings(cluster) == {""}
        await cluster.master.agents.on_report("one", [], sent_at=NOW.timestamp() + 90)
        assert "1 min 30 s ahead of" in str(await warnings(cluster))


@pytest.mark.parametrize("sent_at", [None, NOW + timedelta(seconds=3), NOW - timedelta(seconds=3)])
async def test_an_older_agent_and_a_slow_connection_are_not_warned_about(
    tmp_path: Path, sent_at: datetime | None
) -> None:
    async with open_cluster(tmp_path, FixedClock(NOW)) as cluster:
        await join(cluster, sent_at)
        assert await warnings(cluster) == {""}


async def test_a_change_that_could_not_be_stored_is_stored_with_the_next_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection remembers only the reports that were committed."""
    stored, busy = StoredReport(), SlotStatus(id=0, status="occupied", reason="by process 7")

    async def fail(*_: Any, **_values: Any) -> None:
        raise OSError("a test's")

    async with open_cluster(tmp_path, FixedClock(NOW)) as cluster:
        await join(cluster, NOW)
        ahead = (NOW + timedelta(hours=3)).timestamp()
        agents = cluster.master.agents
        assert not await agents.on_report("one", [], (), NOW.timestamp(), stored)
        with monkeypatch.context() as broken:
            broken.setattr(agent_rows, "change", fail)
            with pytest.raises(OSError, match="a test's"):
                await agents.on_report("one", [], (), ahead, stored)
        assert await warnings(cluster) == {""}
        assert await agents.on_report("one", [], (), ahead, stored)
        assert await agents.on_report("one", [], (busy,), ahead, stored)
        assert not await agents.on_report("one", [], (busy,), ahead, stored)
        assert len(await warnings(cluster)) == 1
        assert "3 h 0 min ahead of" in (await warnings(cluster)).pop()
        assert await agents.on_report("one", [], (), ahead, stored), "the slot is free again"
