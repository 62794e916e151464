"""Metrics that are not finite, and silent trials: a warning once in the log, and a note in lists and states."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_failures import log
from tests.integration.test_metrics import next_run, report
from tests.support.clock import FixedClock
from tests.support.cluster import CONFIG, Cluster, FakeAgent, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState

NAN = "the validation metric loss is NaN at step 2"
SILENT = "has reported nothing for 45 min"


async def running(cluster: Cluster, more: str = "") -> tuple[FakeAgent, Any, dict[str, str]]:
    agent = await cluster.join()
    await cluster.create(CONFIG + more)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    return agent, desired, cluster.as_task(desired.allocation_id)


async def warnings(cluster: Cluster) -> list[str]:
    return [line for line in await log(cluster) if "health.nan" in line]


async def search_row(cluster: Cluster) -> dict[str, Any]:
    (row,) = (await cluster.post("/detent/experiments/search", {})).json()["experiments"]
    return dict(row)


async def test_the_first_metric_that_is_not_finite_is_warned_about_once(cluster: Cluster):
    agent, desired, task = await running(cluster)
    await report(cluster, task, 1, {"loss": 0.5}, group="validation")
    assert (await cluster.get("/api/v1/trials/1"))["trial"]["healthWarning"] is None
    await report(cluster, task, 2, {"accuracy": 1, "loss": "NaN"}, group="validation")
    await report(cluster, task, 3, {"loss": "Infinity"}, group="validation")
    assert await warnings(cluster) == [f"{NAN}; the trial goes on (health.nan: warn)"]
    assert (await cluster.get("/api/v1/trials/1"))["trial"]["healthWarning"] == NAN
    status = await cluster.get("/detent/experiments/1/status")
    assert (status["text"], status["trials"][0]["note"]) == (f"running: {NAN}", NAN)
    assert (await search_row(cluster))["note"] == f"trial 1: {NAN}"
    (listed,) = (await cluster.get("/api/v1/experiments"))["experiments"]
    assert listed["healthNote"] == f"trial 1: {NAN}"
    (searched,) = (await cluster.post("/api/v1/experiments-search", {})).json()["experiments"]
    assert searched["experiment"]["healthNote"] == f"trial 1: {NAN}"
    _, task = await next_run(cluster, agent, desired)
    await report(cluster, task, 4, {"loss": "NaN"}, run=2, group="validation")
    assert len(await warnings(cluster)) == 1


async def test_a_metric_that_is_not_finite_stops_the_trial_if_health_nan_is_stop(cluster: Cluster):
    agent, desired, task = await running(cluster, "health: {nan: stop}\nmax_restarts: 5\n")
    await report(cluster, task, 2, {"loss": "NaN"}, group="validation")

    async def is_stopping() -> bool:
        return (await cluster.get("/detent/trials/1/progress"))["state"] == "STOPPING_ERROR"

    await eventually(is_stopping)
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def has_failed() -> bool:
        return await cluster.state(1) == "STATE_ERROR"

    await eventually(has_failed)
    assert await warnings(cluster) == [
        f"{NAN}; the trial is stopped (health.nan: stop)",
        f"the trial was stopped: {NAN} (health.nan: stop)",
    ]
    (attempt,) = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
    assert attempt["failure"] == f"{NAN} (health.nan: stop)"
    status = await cluster.get("/detent/experiments/1/status")
    assert status["failure"]["text"] == f"{NAN} (health.nan: stop)"


async def test_a_metric_that_is_not_finite_and_joins_an_earlier_report_of_its_step_is_warned_about(cluster: Cluster):
    _, _, task = await running(cluster, "health: {nan: stop}\n")
    await report(cluster, task, 2, {"accuracy": 1}, group="validation")
    await report(cluster, task, 2, {"loss": "NaN"}, group="validation")
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert trial["healthWarning"] == NAN

    async def is_stopping() -> bool:
        return (await cluster.get("/detent/trials/1/progress"))["state"] == "STOPPING_ERROR"

    await eventually(is_stopping)


@pytest.mark.parametrize(
    ("section", "minutes", "is_noted"),
    [
        ("", 29, False),
        ("", 45, True),
        ("health: {silent_after: 2h}\n", 45, False),
        ("health: {silent_after: 0}", 45, False),
    ],
)
async def test_a_silent_trial_has_a_note_until_it_reports(tmp_path: Path, section: str, minutes: int, is_noted: bool):
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with open_cluster(tmp_path, clock) as cluster:
        _, _, task = await running(cluster, section)
        clock.at += timedelta(hours=1)
        await report(cluster, task, 1, {"loss": 0.5})
        clock.at += timedelta(minutes=minutes)
        status = await cluster.get("/detent/experiments/1/status")
        assert status["text"] == ("running: it " + SILENT if is_noted else "running")
        expected = f"trial 1 {SILENT}" if is_noted else None
        assert (await search_row(cluster))["note"] == expected
        (listed,) = (await cluster.get("/api/v1/experiments"))["experiments"]
        assert listed["healthNote"] == expected
        assert (await cluster.get("/detent/trials/1/progress"))["note"] == (f"it {SILENT}" if is_noted else None)
        for call in ("progress", "metrics"):
            if call == "progress":
                await cluster.post("/api/v1/trials/1/progress", {"progress": 0.5}, **task)
            else:
                clock.at += timedelta(minutes=31)
                await report(cluster, task, 2, {"loss": 0.5})
            assert (await cluster.get("/detent/trials/1/progress"))["note"] is None
