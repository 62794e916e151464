"""Metrics that are not finite, and trials that are silent: named once in the log, in lists, and where causes are shown."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_failures import log
from tests.integration.test_metrics import next_run, report
from tests.support.clock import FixedClock
from tests.support.cluster import CONFIG, Cluster, FakeAgent, cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState

NAN = "the validation metric loss is NaN at step 2"
SILENT = "has reported nothing for 45 min"


async def running(one: Cluster, more: str = "") -> tuple[FakeAgent, Any, dict[str, str]]:
    agent = await one.join()
    await one.create(CONFIG + more)
    (wish,) = await agent.wished()
    await agent.run(wish)
    return agent, wish, one.as_task(wish.allocation_id)


async def warnings(one: Cluster) -> list[str]:
    return [line for line in await log(one) if "health.nan" in line]


async def search_row(one: Cluster) -> dict[str, Any]:
    (row,) = (await one.post("/detent/experiments/search", {})).json()["experiments"]
    return dict(row)


async def test_the_first_metric_that_is_not_finite_is_warned_about_once(one: Cluster):
    agent, wish, task = await running(one)
    await report(one, task, 1, {"loss": 0.5}, group="validation")
    assert (await one.get("/api/v1/trials/1"))["trial"]["healthWarning"] is None
    await report(one, task, 2, {"accuracy": 1, "loss": "NaN"}, group="validation")
    await report(one, task, 3, {"loss": "Infinity"}, group="validation")
    assert await warnings(one) == [f"{NAN}; the trial goes on (health.nan: warn)"]
    assert (await one.get("/api/v1/trials/1"))["trial"]["healthWarning"] == NAN
    status = await one.get("/detent/experiments/1/status")
    assert (status["text"], status["trials"][0]["note"]) == (f"running: {NAN}", NAN)
    assert (await search_row(one))["note"] == f"trial 1: {NAN}"
    (listed,) = (await one.get("/api/v1/experiments"))["experiments"]
    assert listed["healthNote"] == f"trial 1: {NAN}"
    (searched,) = (await one.post("/api/v1/experiments-search", {})).json()["experiments"]
    assert searched["experiment"]["healthNote"] == f"trial 1: {NAN}"
    _, task = await next_run(one, agent, wish)
    await report(one, task, 4, {"loss": "NaN"}, run=2, group="validation")
    assert len(await warnings(one)) == 1


async def test_a_metric_that_is_not_finite_stops_the_trial_where_the_configuration_says_so(one: Cluster):
    agent, wish, task = await running(one, "health: {nan: stop}\nmax_restarts: 5\n")
    await report(one, task, 2, {"loss": "NaN"}, group="validation")

    async def is_stopping() -> bool:
        return (await one.get("/detent/trials/1/progress"))["state"] == "STOPPING_ERROR"

    await eventually(is_stopping)
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def has_failed() -> bool:
        return await one.state(1) == "STATE_ERROR"

    await eventually(has_failed)
    assert await warnings(one) == [
        f"{NAN}; the trial is stopped (health.nan: stop)",
        f"the trial was stopped: {NAN} (health.nan: stop)",
    ]
    (attempt,) = (await one.get("/detent/trials/1/attempts"))["attempts"]
    assert attempt["failure"] == f"{NAN} (health.nan: stop)"
    status = await one.get("/detent/experiments/1/status")
    assert status["failure"]["text"] == f"{NAN} (health.nan: stop)"


@pytest.mark.parametrize(
    ("section", "minutes", "is_noted"),
    [
        ("", 29, False),
        ("", 45, True),
        ("health: {silent_after: 2h}\n", 45, False),
        ("health: {silent_after: 0}", 45, False),
    ],
)
async def test_a_silent_trial_has_a_note(tmp_path: Path, section: str, minutes: int, is_noted: bool):
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with cluster(tmp_path, clock) as one:
        _, _, task = await running(one, section)
        clock.at += timedelta(hours=1)
        await report(one, task, 1, {"loss": 0.5})
        clock.at += timedelta(minutes=minutes)
        status = await one.get("/detent/experiments/1/status")
        assert status["text"] == ("running: it " + SILENT if is_noted else "running")
        expected = f"trial 1 {SILENT}" if is_noted else None
        assert (await search_row(one))["note"] == expected
        (listed,) = (await one.get("/api/v1/experiments"))["experiments"]
        assert listed["healthNote"] == expected
        assert (await one.get("/detent/trials/1/progress"))["note"] == (f"it {SILENT}" if is_noted else None)
        for call in ("progress", "metrics"):
            if call == "progress":
                await one.post("/api/v1/trials/1/progress", {"progress": 0.5}, **task)
            else:
                clock.at += timedelta(minutes=31)
                await report(one, task, 2, {"loss": 0.5})
            assert (await one.get("/detent/trials/1/progress"))["note"] is None
