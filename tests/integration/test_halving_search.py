"""A halving search on a cluster with fake agents: stopped trials, recorded decisions, and its end."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from sqlalchemy import select
from tests.support.cluster import Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState
from determined_master.db.models import ExperimentRow, TrialRow
from determined_master.experiments import kept_searches
from determined_master.experiments.hp_search import event_of
from determined_master.searcher.actions import TrialValidated
from determined_master.searcher.adaptive_asha import AdaptiveAsha
from determined_master.trials.search_event_repository import SearchEvent

HALVING = """
name: halving
entrypoint: python3 run.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
max_restarts: 0
preemption_timeout: 77
searcher: {name: async_halving, metric: loss, max_trials: 3, num_rungs: 2, max_length: {batches: 8},
  max_concurrent_trials: 2}
"""


async def run_desired(agent: FakeAgent, count: int) -> list[DesiredContainer]:
    containers = sorted(await agent.wait_for_desired(count), key=lambda desired: desired.allocation_id)
    for desired in containers:
        await agent.run(desired)
    return containers


async def trial_of(cluster: Cluster, desired: DesiredContainer) -> int:
    task_id = desired.allocation_id.rpartition(".")[0]
    async with cluster.master.database.read() as session:
        return (await session.scalars(select(TrialRow.id).where(TrialRow.task_id == task_id))).one()


async def report(cluster: Cluster, desired: DesiredContainer, steps: int, metrics: dict[str, Any]) -> None:
    trial = await trial_of(cluster, desired)
    body = {"trialId": trial, "trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": metrics}}
    answer = await cluster.post(
        f"/api/v1/trials/{trial}/metrics",
        {"group": "validation", "metrics": body},
        **cluster.as_task(desired.allocation_id),
    )
    assert answer.status_code == 200, answer.text


async def trial(cluster: Cluster, trial_id: int) -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get(f"/api/v1/trials/{trial_id}"))["trial"]
    return found


async def decisions(cluster: Cluster, count: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []

    async def enough() -> bool:
        rows[:] = (await cluster.get("/detent/experiments/1/search"))["decisions"]
        return len(rows) >= count

    await eventually(enough)
    return rows


async def next_desired(agent: FakeAgent, known: Collection[DesiredContainer]) -> DesiredContainer:
    """Waits for a container of another attempt than those that are known."""
    new: list[DesiredContainer] = []

    async def has_new() -> bool:
        ids = {desired.allocation_id for desired in known}
        new[:] = [desired for desired in await agent.desired() if desired.allocation_id not in ids]
        return bool(new)

    await eventually(has_new)
    return new[0]


async def is_asked_to_leave(cluster: Cluster, desired: DesiredContainer) -> bool:
    answer = await cluster.client.get(
        f"/api/v1/allocations/{desired.allocation_id}/signals/preemption?timeout_seconds=0",
        headers=cluster.as_task(desired.allocation_id),
    )
    return bool(answer.json()["preempt"])


async def test_a_stopped_trial_leaves_at_once_is_not_restarted_and_makes_room(cluster: Cluster):
    agent = await cluster.join(slots=2)
    experiment = await cluster.create(HALVING)
    kept, stopped = await run_desired(agent, 2)
    await report(cluster, kept, 2, {"loss": 0.2})
    await report(cluster, stopped, 2, {"loss": 0.5})
    decided = await decisions(cluster, 5)
    ids = [await trial_of(cluster, desired) for desired in (kept, stopped)]
    assert [(each["trialId"], each["kind"], each["reason"]) for each in decided[2:]] == [
        (ids[0], "kept", "kept at rung 1: 1st of 1, 1 kept (loss 0.2 after 2 batches)"),
        (ids[1], "stopped", "stopped at rung 1: 2nd of 2, 1 kept (loss 0.5 after 2 batches)"),
        (3, "created", "created: trial 3 of 3"),
    ]
    assert (decided[3]["rung"], decided[3]["rank"], decided[3]["metric"], decided[3]["trained"]) == (1, 2, 0.5, 2)
    assert await is_asked_to_leave(cluster, stopped)
    assert not await is_asked_to_leave(cluster, kept)
    log = (await cluster.client.get(f"/api/v1/trials/{ids[1]}/logs")).text
    assert "preemption was requested (stopped at rung 1: 2nd of 2" in log
    assert "preemption_timeout: 77 s" in log
    await cluster.post(
        f"/api/v1/allocations/{stopped.allocation_id}/signals/ack_preemption",
        {"allocationId": stopped.allocation_id},
        **cluster.as_task(stopped.allocation_id),
    )
    await agent.exit(stopped)

    last = await next_desired(agent, [kept, stopped])
    assert await trial_of(cluster, last) == 3
    ended = await trial(cluster, ids[1])
    assert (ended["state"], ended["restarts"]) == ("STATE_COMPLETED", 0)
    own_decisions = (await cluster.get(f"/detent/trials/{ids[1]}/decisions"))["decisions"]
    (own,) = [each for each in own_decisions if each["kind"] == "stopped"]
    assert own["reason"] == decided[3]["reason"]
    await agent.run(last)
    await report(cluster, last, 8, {"loss": 0.1})
    await report(cluster, kept, 8, {"loss": 0.2})
    await decisions(cluster, 8)
    for desired in (kept, last):
        await agent.exit(desired)

    async def over() -> bool:
        return await cluster.state(experiment) == "STATE_COMPLETED"

    await eventually(over)
    search = await cluster.get("/detent/experiments/1/search")
    assert search["brackets"] == [{"number": 1, "units": [2, 8], "results": [3, 2], "trials": 3}]
    assert (search["unit"], search["metric"]) == ("batches", "loss")
    assert [each["reason"] for each in search["decisions"] if each["rung"] == 2] == [
        "finished the last rung, 2: 1st of 1 (loss 0.1 after 8 batches)",
        "finished the last rung, 2: 2nd of 2 (loss 0.2 after 8 batches)",
    ]
    assert (await cluster.get("/api/v1/experiments/1"))["experiment"]["progress"] == 1.0


async def test_of_the_decisions_of_a_search_the_newest_are_listed_up_to_a_limit(cluster: Cluster):
    agent = await cluster.join(slots=2)
    await cluster.create(HALVING)
    first, _second = await run_desired(agent, 2)
    await report(cluster, first, 2, {"loss": 0.5})
    every = await decisions(cluster, 3)
    for limit in (1, 2, 3, 9):
        assert (await cluster.get("/detent/experiments/1/search", limit=limit))["decisions"] == every[-limit:]


async def status_after_kills(
    cluster: Cluster, agent: FakeAgent, containers: Sequence[DesiredContainer], experiment: int
) -> dict[str, Any]:
    """Ends containers that the master kills; returns the status of their experiment, which then has failed."""

    async def killed() -> bool:
        return [desired.state for desired in await agent.desired()] == ["stopped", "stopped"]

    await eventually(killed)
    for desired in containers:
        await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def over() -> bool:
        return await cluster.state(experiment) == "STATE_ERROR"

    await eventually(over)
    return await cluster.get(f"/detent/experiments/{experiment}/status")


async def test_a_report_without_the_metric_ends_the_experiment_with_the_reason(cluster: Cluster):
    agent = await cluster.join(slots=2)
    experiment = await cluster.create(HALVING)
    containers = await run_desired(agent, 2)
    await report(cluster, containers[0], 2, {"accuracy": 0.9})
    await report(cluster, containers[0], 3, {"accuracy": 0.9})
    status = await status_after_kills(cluster, agent, containers, experiment)
    assert status["text"].startswith("failed: the validation after 2 batches has no loss, the searcher's metric")
    assert "it reported accuracy" in status["text"]


async def test_reports_of_one_step_are_judged_together_when_the_metric_has_come(cluster: Cluster):
    agent = await cluster.join(slots=2)
    experiment = await cluster.create(HALVING)
    first, _second = await run_desired(agent, 2)
    await report(cluster, first, 2, {"accuracy": 0.9})
    await report(cluster, first, 2, {"loss": 0.5})
    await report(cluster, first, 3, {"accuracy": 0.9})
    await report(cluster, first, 3, {"loss": 0.4})
    decided = await decisions(cluster, 3)
    assert "loss 0.5 after 2 batches" in decided[2]["reason"]
    assert await cluster.state(experiment) == "STATE_RUNNING"


async def test_a_trial_that_diverges_fails_alone_and_its_log_says_why(cluster: Cluster):
    agent = await cluster.join(slots=2)
    await cluster.create(HALVING)
    first, _second = await run_desired(agent, 2)
    await report(cluster, first, 2, {"loss": "NaN"})
    decided = await decisions(cluster, 4)
    assert (decided[2]["kind"], decided[3]["kind"]) == ("stopped", "created")
    await agent.send_report(first, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    number = await trial_of(cluster, first)

    async def failed() -> bool:
        return bool((await trial(cluster, number))["state"] == "STATE_ERROR")

    await eventually(failed)
    assert await cluster.state(1) == "STATE_RUNNING"
    assert "reported loss = nan" in (await cluster.client.get(f"/api/v1/trials/{number}/logs")).text


async def test_a_search_whose_every_trial_fails_ends_in_error_with_the_reason(cluster: Cluster):
    agent = await cluster.join(slots=2)
    experiment = await cluster.create(HALVING)
    containers: list[DesiredContainer] = []
    for _ in range(3):
        desired = await next_desired(agent, containers)
        containers.append(desired)
        await agent.run(desired)
        await agent.exit(desired, code=3)

    async def over() -> bool:
        return await cluster.state(experiment) == "STATE_ERROR"

    await eventually(over)
    text = (await cluster.get("/detent/experiments/1/status"))["text"]
    assert text == "failed: every trial of the search failed (3 of 3); trial 1: the process exited with code 3"


async def test_the_preview_of_a_search_counts_its_trials_by_length(cluster: Cluster):
    searcher = {"name": "adaptive_asha", "metric": "loss", "max_trials": 16, "time_metric": "batches", "max_time": 64}
    answer = await cluster.post("/api/v1/preview-hp-search", {"config": {"searcher": searcher}, "seed": 3})
    assert answer.status_code == 200, answer.text
    summary = answer.json()["summary"]
    assert [(each["count"], each["unit"]) for each in summary["trials"]] == [
        (9, {"name": "batches", "value": 4, "maxLength": False}),
        (5, {"name": "batches", "value": 16, "maxLength": False}),
        (2, {"name": "batches", "value": 64, "maxLength": False}),
    ]
    assert summary["config"]["divisor"] == 4.0
    bad = await cluster.post("/api/v1/preview-hp-search", {"config": {"searcher": {"name": "pbt", "metric": "loss"}}})
    assert bad.status_code == 400
    assert "no longer supported" in bad.text


async def test_limits_of_a_running_search_are_changed_by_its_owner(cluster: Cluster):
    agent = await cluster.join(slots=4)
    await cluster.create(HALVING)
    await run_desired(agent, 2)
    body = {"searcher": {"maxTrials": 5, "maxConcurrentTrials": 4}}
    answer = await cluster.client.patch("/api/v1/experiments/1", json=body)
    assert answer.status_code == 200, answer.text
    searcher = answer.json()["experiment"]["config"]["searcher"]
    assert (searcher["max_trials"], searcher["max_concurrent_trials"]) == (5, 4)
    await agent.wait_for_desired(4)
    assert [each["reason"] for each in await decisions(cluster, 4)][2:] == [
        "created: trial 3 of 5",
        "created: trial 4 of 5",
    ]
    events = (await cluster.get("/detent/events", kind="search_changed"))["events"]
    assert events[0]["text"] == "admin set max_trials to 5 and max_concurrent_trials to 4 of experiment 1"
    for values, text in (({"maxTrials": 0}, "between 1"), ({"maxConcurrentTrials": -1}, "between 0")):
        bad = await cluster.client.patch("/api/v1/experiments/1", json={"searcher": values})
        assert bad.status_code == 400
        assert text in bad.text
    await cluster.post("/api/v1/experiments/1/kill", {})
    late = await cluster.client.patch("/api/v1/experiments/1", json=body)
    assert late.status_code == 400, late.text
    assert "creates no more trials" in late.text


async def test_limits_that_a_search_does_not_have_are_refused(cluster: Cluster):
    await cluster.create(activate=False)
    answer = await cluster.client.patch("/api/v1/experiments/1", json={"searcher": {"maxTrials": 5}})
    assert answer.status_code == 400
    assert "a single search has one trial" in answer.text


async def test_a_search_is_restored_from_a_snapshot_that_is_some_events_old(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    """The events after the snapshot are processed again, and the next decision is the one that would have followed."""
    monkeypatch.setattr(kept_searches, "MAX_KEPT_METHODS", 0)
    agent = await cluster.join(slots=2)
    await cluster.create(HALVING)
    kept, stopped = await run_desired(agent, 2)
    await report(cluster, kept, 2, {"loss": 0.2})
    await decisions(cluster, 3)
    async with cluster.master.database.read() as session:
        row = await session.get_one(ExperimentRow, 1)
    assert row.searcher_cursor > row.searcher_snapshot.get("cursor", 0)
    await report(cluster, stopped, 2, {"loss": 0.5})
    decided = await decisions(cluster, 4)
    assert decided[3]["reason"].startswith("stopped at rung 1: 2nd of 2")


async def test_the_method_of_a_search_that_has_ended_is_not_kept(cluster: Cluster):
    await cluster.create(
        "name: one\nentrypoint: x\nsearcher: {name: single, metric: loss}\nhyperparameters: {}\nmax_restarts: 0\n"
    )
    agent = await cluster.join()
    (desired,) = await agent.wait_for_desired(1)
    await agent.run(desired)
    await agent.exit(desired)

    async def has_ended() -> bool:
        return (await cluster.get("/api/v1/experiments/1"))["experiment"]["state"] == "STATE_COMPLETED"

    await eventually(has_ended)
    assert not cluster.master.search.kept._methods  # noqa: SLF001


async def test_a_search_whose_method_raises_ends_in_error_with_the_reason(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    def raises(*_arguments: object) -> None:
        raise TypeError("no step")

    monkeypatch.setattr(AdaptiveAsha, "_report", raises)
    agent = await cluster.join(slots=2)
    experiment = await cluster.create(HALVING)
    containers = await run_desired(agent, 2)
    await report(cluster, containers[0], 2, {"loss": 0.5})
    status = await status_after_kills(cluster, agent, containers, experiment)
    assert status["text"].startswith("failed: the search method failed: TypeError: no step")


async def test_a_killed_search_whose_method_raises_is_canceled(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    def raises(*_arguments: object) -> None:
        raise TypeError("no step")

    experiment = await cluster.create(HALVING)
    monkeypatch.setattr(AdaptiveAsha, "on_event", raises)
    await cluster.post(f"/api/v1/experiments/{experiment}/kill", {})

    async def over() -> bool:
        return await cluster.state(experiment) == "STATE_CANCELED"

    await eventually(over)


def test_a_stored_validation_without_a_step_is_of_step_0():
    event = SearchEvent(1, 1, "validated", {"steps": None, "metrics": {"loss": 0.5}}, "a")
    assert event_of(event) == TrialValidated("a", 0, {"loss": 0.5})
