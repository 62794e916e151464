"""A halving search on a cluster whose agents are played: who is stopped, what is recorded, and how it ends."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import select
from tests.support.cluster import Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState
from determined_master.db.models import ExperimentRow, TrialRow

HALVING = """
name: halving
entrypoint: python3 run.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
max_restarts: 0
preemption_timeout: 77
searcher: {name: async_halving, metric: loss, max_trials: 3, num_rungs: 2, max_length: {batches: 8},
  max_concurrent_trials: 2}
"""


async def started(agent: FakeAgent, count: int) -> list[DesiredContainer]:
    wishes = sorted(await agent.wished(count), key=lambda wish: wish.allocation_id)
    for wish in wishes:
        await agent.run(wish)
    return wishes


async def trial_of(one: Cluster, wish: DesiredContainer) -> int:
    task_id = wish.allocation_id.rpartition(".")[0]
    async with one.master.database.read() as session:
        return (await session.scalars(select(TrialRow.id).where(TrialRow.task_id == task_id))).one()


async def report(one: Cluster, wish: DesiredContainer, steps: int, metrics: dict[str, Any]) -> None:
    trial = await trial_of(one, wish)
    body = {"trialId": trial, "trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": metrics}}
    answer = await one.post(
        f"/api/v1/trials/{trial}/metrics", {"group": "validation", "metrics": body}, **one.as_task(wish.allocation_id)
    )
    assert answer.status_code == 200, answer.text


async def trial(one: Cluster, trial_id: int) -> dict[str, Any]:
    found: dict[str, Any] = (await one.get(f"/api/v1/trials/{trial_id}"))["trial"]
    return found


async def decisions(one: Cluster, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def enough() -> bool:
        found[:] = (await one.get("/detent/experiments/1/search"))["decisions"]
        return len(found) >= count

    await eventually(enough)
    return found


async def next_wish(agent: FakeAgent, known: Collection[DesiredContainer]) -> DesiredContainer:
    """Waits for a container of another attempt than those that are known."""
    new: list[DesiredContainer] = []

    async def wished() -> bool:
        ids = {wish.allocation_id for wish in known}
        new[:] = [wish for wish in await agent.wish() if wish.allocation_id not in ids]
        return bool(new)

    await eventually(wished)
    return new[0]


async def is_asked_to_leave(one: Cluster, wish: DesiredContainer) -> bool:
    answer = await one.client.get(
        f"/api/v1/allocations/{wish.allocation_id}/signals/preemption?timeout_seconds=0",
        headers=one.as_task(wish.allocation_id),
    )
    return bool(answer.json()["preempt"])


async def test_a_stopped_trial_leaves_at_once_is_not_restarted_and_makes_room(one: Cluster):
    agent = await one.join(slots=2)
    experiment = await one.create(HALVING)
    kept, stopped = await started(agent, 2)
    await report(one, kept, 2, {"loss": 0.2})
    await report(one, stopped, 2, {"loss": 0.5})
    found = await decisions(one, 5)
    ids = [await trial_of(one, wish) for wish in (kept, stopped)]
    assert [(each["trialId"], each["kind"], each["reason"]) for each in found[2:]] == [
        (ids[0], "kept", "kept at rung 1: 1st of 1, 1 kept (loss 0.2 after 2 batches)"),
        (ids[1], "stopped", "stopped at rung 1: 2nd of 2, 1 kept (loss 0.5 after 2 batches)"),
        (3, "created", "created: trial 3 of 3"),
    ]
    assert (found[3]["rung"], found[3]["rank"], found[3]["metric"], found[3]["trained"]) == (1, 2, 0.5, 2)
    assert await is_asked_to_leave(one, stopped)
    assert not await is_asked_to_leave(one, kept)
    log = (await one.client.get(f"/api/v1/trials/{ids[1]}/logs")).text
    assert "preemption was requested (stopped at rung 1: 2nd of 2" in log
    assert "preemption_timeout: 77 s" in log
    await one.post(
        f"/api/v1/allocations/{stopped.allocation_id}/signals/ack_preemption",
        {"allocationId": stopped.allocation_id},
        **one.as_task(stopped.allocation_id),
    )
    await agent.exit(stopped)

    last = await next_wish(agent, [kept, stopped])
    assert await trial_of(one, last) == 3
    ended = await trial(one, ids[1])
    assert (ended["state"], ended["restarts"]) == ("STATE_COMPLETED", 0)
    shown = (await one.get(f"/detent/trials/{ids[1]}/decisions"))["decisions"]
    (own,) = [each for each in shown if each["kind"] == "stopped"]
    assert own["reason"] == found[3]["reason"]
    await agent.run(last)
    await report(one, last, 8, {"loss": 0.1})
    await report(one, kept, 8, {"loss": 0.2})
    await decisions(one, 8)
    for wish in (kept, last):
        await agent.exit(wish)

    async def over() -> bool:
        return await one.state(experiment) == "STATE_COMPLETED"

    await eventually(over)
    search = await one.get("/detent/experiments/1/search")
    assert search["brackets"] == [{"number": 1, "units": [2, 8], "results": [3, 2], "trials": 3}]
    assert (search["unit"], search["metric"]) == ("batches", "loss")
    assert [each["reason"] for each in search["decisions"] if each["rung"] == 2] == [
        "finished the last rung, 2: 1st of 1 (loss 0.1 after 8 batches)",
        "finished the last rung, 2: 2nd of 2 (loss 0.2 after 8 batches)",
    ]
    assert (await one.get("/api/v1/experiments/1"))["experiment"]["progress"] == 1.0


async def test_a_report_without_the_metric_ends_the_experiment_with_the_reason(one: Cluster):
    agent = await one.join(slots=2)
    experiment = await one.create(HALVING)
    wishes = await started(agent, 2)
    await report(one, wishes[0], 2, {"accuracy": 0.9})
    await report(one, wishes[0], 3, {"accuracy": 0.9})

    async def killed() -> bool:
        return [wish.state for wish in await agent.wish()] == ["stopped", "stopped"]

    await eventually(killed)
    for wish in wishes:
        await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def over() -> bool:
        return await one.state(experiment) == "STATE_ERROR"

    await eventually(over)
    status = await one.get("/detent/experiments/1/status")
    assert status["text"].startswith("failed: the validation after 2 batches has no loss, the searcher's metric")
    assert "it reported accuracy" in status["text"]


async def test_reports_of_one_step_are_judged_together_when_the_metric_has_come(one: Cluster):
    agent = await one.join(slots=2)
    experiment = await one.create(HALVING)
    first, _second = await started(agent, 2)
    await report(one, first, 2, {"accuracy": 0.9})
    await report(one, first, 2, {"loss": 0.5})
    await report(one, first, 3, {"accuracy": 0.9})
    await report(one, first, 3, {"loss": 0.4})
    found = await decisions(one, 3)
    assert "loss 0.5 after 2 batches" in found[2]["reason"]
    assert await one.state(experiment) == "STATE_RUNNING"


async def test_a_trial_that_diverges_fails_alone_and_its_log_says_why(one: Cluster):
    agent = await one.join(slots=2)
    await one.create(HALVING)
    first, _second = await started(agent, 2)
    await report(one, first, 2, {"loss": "NaN"})
    found = await decisions(one, 4)
    assert (found[2]["kind"], found[3]["kind"]) == ("stopped", "created")
    await agent.say(first, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    number = await trial_of(one, first)

    async def failed() -> bool:
        return bool((await trial(one, number))["state"] == "STATE_ERROR")

    await eventually(failed)
    assert await one.state(1) == "STATE_RUNNING"
    assert "reported loss = nan" in (await one.client.get(f"/api/v1/trials/{number}/logs")).text


async def test_a_search_whose_every_trial_fails_ends_in_error_with_the_reason(one: Cluster):
    agent = await one.join(slots=2)
    experiment = await one.create(HALVING)
    seen: list[DesiredContainer] = []
    for _ in range(3):
        wish = await next_wish(agent, seen)
        seen.append(wish)
        await agent.run(wish)
        await agent.exit(wish, code=3)

    async def over() -> bool:
        return await one.state(experiment) == "STATE_ERROR"

    await eventually(over)
    text = (await one.get("/detent/experiments/1/status"))["text"]
    assert text == "failed: every trial of the search failed (3 of 3); trial 1: the process exited with code 3"


async def test_the_preview_of_the_older_api(one: Cluster):
    searcher = {"name": "adaptive_asha", "metric": "loss", "max_trials": 16, "time_metric": "batches", "max_time": 64}
    answer = await one.post("/api/v1/preview-hp-search", {"config": {"searcher": searcher}, "seed": 3})
    assert answer.status_code == 200, answer.text
    summary = answer.json()["summary"]
    assert [(each["count"], each["unit"]) for each in summary["trials"]] == [
        (9, {"name": "batches", "value": 4, "maxLength": False}),
        (5, {"name": "batches", "value": 16, "maxLength": False}),
        (2, {"name": "batches", "value": 64, "maxLength": False}),
    ]
    assert summary["config"]["divisor"] == 4.0
    bad = await one.post("/api/v1/preview-hp-search", {"config": {"searcher": {"name": "pbt", "metric": "loss"}}})
    assert bad.status_code == 400
    assert "no longer supported" in bad.text


async def test_limits_of_a_running_search_are_changed_by_its_owner(one: Cluster):
    agent = await one.join(slots=4)
    await one.create(HALVING)
    await started(agent, 2)
    body = {"searcher": {"maxTrials": 5, "maxConcurrentTrials": 4}}
    answer = await one.client.patch("/api/v1/experiments/1", json=body)
    assert answer.status_code == 200, answer.text
    searcher = answer.json()["experiment"]["config"]["searcher"]
    assert (searcher["max_trials"], searcher["max_concurrent_trials"]) == (5, 4)
    await agent.wished(4)
    assert [each["reason"] for each in await decisions(one, 4)][2:] == [
        "created: trial 3 of 5",
        "created: trial 4 of 5",
    ]
    events = (await one.get("/detent/events", kind="search_changed"))["events"]
    assert events[0]["text"] == "admin set max_trials to 5 and max_concurrent_trials to 4 of experiment 1"
    for values, text in (({"maxTrials": 0}, "between 1"), ({"maxConcurrentTrials": -1}, "between 0")):
        bad = await one.client.patch("/api/v1/experiments/1", json={"searcher": values})
        assert bad.status_code == 400
        assert text in bad.text
    await one.post("/api/v1/experiments/1/kill", {})
    late = await one.client.patch("/api/v1/experiments/1", json=body)
    assert late.status_code == 400, late.text
    assert "creates no more trials" in late.text


async def test_limits_that_a_search_does_not_have_are_refused(one: Cluster):
    await one.create(activate=False)
    answer = await one.client.patch("/api/v1/experiments/1", json={"searcher": {"maxTrials": 5}})
    assert answer.status_code == 400
    assert "a single search has one trial" in answer.text


async def test_a_search_is_restored_from_a_snapshot_that_is_some_events_old(one: Cluster):
    """The events after the snapshot are processed again, and the next decision is the one that would have followed."""
    agent = await one.join(slots=2)
    await one.create(HALVING)
    kept, stopped = await started(agent, 2)
    await report(one, kept, 2, {"loss": 0.2})
    await decisions(one, 3)
    async with one.master.database.read() as session:
        row = await session.get_one(ExperimentRow, 1)
    assert row.searcher_cursor > row.searcher_snapshot.get("cursor", 0)
    one.master.search._methods.clear()
    await report(one, stopped, 2, {"loss": 0.5})
    found = await decisions(one, 4)
    assert found[3]["reason"].startswith("stopped at rung 1: 2nd of 2")
