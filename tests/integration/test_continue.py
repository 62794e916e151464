"""Continuing an experiment that has ended: the same experiment, from its newest checkpoints, with all its restarts."""

from typing import Any

import pytest
from sqlalchemy import select
from tests.support.cluster import CONFIG, Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState
from determined_master.checkpoints import retention_repository
from determined_master.db.models import ExperimentRow
from determined_master.experiments.commands.create import Creator

PATH = "/api/v1/experiments/continue"
LENGTH = "searcher: {name: single, metric: loss, max_length: {batches: 4}}"
LIMITED = CONFIG.replace("searcher: {name: single, metric: loss}", LENGTH) + "max_restarts: 1\n"
RANDOM = """
name: search
entrypoint: python3 run.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
max_restarts: 0
searcher: {name: random, metric: loss, max_trials: 3, max_concurrent_trials: 1}
"""
HALVING = RANDOM.replace(
    "name: random, metric: loss, max_trials: 3, max_concurrent_trials: 1",
    "name: async_halving, metric: loss, max_trials: 3, num_rungs: 2, max_length: {batches: 8}, max_concurrent_trials: 2",
)


async def run_next(agent: FakeAgent) -> DesiredContainer:
    """Waits for one container that is not running yet, and runs it."""

    async def fresh() -> DesiredContainer | None:
        containers = [desired for desired in await agent.desired() if desired.state == "running"]
        return containers[-1] if containers else None

    desired = await eventually(fresh)
    await agent.run(desired)
    return desired


async def reaches(cluster: Cluster, state: str, experiment: int = 1) -> None:
    async def is_there() -> bool:
        return await cluster.state(experiment) == f"STATE_{state}"

    await eventually(is_there)


async def trial(cluster: Cluster, trial_id: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get(f"/api/v1/trials/{trial_id}"))["trial"]
    return found


async def save_checkpoint(cluster: Cluster, desired: DesiredContainer, steps: int) -> str:
    uuid = f"c0ffee00-0000-4000-8000-{steps:012}"
    body = {
        "taskId": desired.spec.task_id,
        "allocationId": desired.allocation_id,
        "uuid": uuid,
        "reportTime": "2026-01-01T00:00:00Z",
        "resources": {"weights": "1"},
        "metadata": {"steps_completed": steps},
        "state": "STATE_COMPLETED",
    }
    answer = await cluster.post("/api/v1/checkpoints", body, **cluster.as_task(desired.allocation_id))
    assert answer.status_code == 200, answer.text
    return uuid


async def complete_first(cluster: Cluster, agent: FakeAgent) -> str:
    """Completes experiment 1 with a checkpoint at step 4; returns the checkpoint."""
    await cluster.create(LIMITED)
    desired = await run_next(agent)
    uuid = await save_checkpoint(cluster, desired, 4)
    await agent.exit(desired)
    await reaches(cluster, "COMPLETED")
    return uuid


async def test_a_completed_trial_trains_further_from_its_checkpoint_with_a_longer_length(cluster: Cluster):
    agent = await cluster.join()
    uuid = await complete_first(cluster, agent)
    answer = await cluster.post(PATH, {"id": 1, "overrideConfig": "searcher: {max_length: {batches: 9}}"})
    assert answer.status_code == 200, answer.text
    experiment = answer.json()["experiment"]
    assert (experiment["id"], experiment["progress"], experiment["endTime"]) == (1, 0.0, None)
    assert experiment["config"]["searcher"]["max_length"] == {"batches": 9}
    desired = await run_next(agent)
    assert desired.allocation_id.endswith(".2")
    environment = desired.spec.environment
    assert (environment["DET_LATEST_CHECKPOINT"], environment["DET_STEPS_COMPLETED"]) == (uuid, "4")
    assert (await trial(cluster))["state"] == "STATE_RUNNING"
    events = (await cluster.get("/detent/events", kind="continued"))["events"]
    assert events[0]["text"] == "admin continued experiment 1 with another searcher.max_length.batches"
    await agent.exit(desired)
    await reaches(cluster, "COMPLETED")
    assert (await cluster.get("/api/v1/experiments/1"))["experiment"]["progress"] == 1.0


async def test_a_failed_trial_has_all_its_restarts_again(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create(LIMITED)
    for _ in range(2):
        await agent.exit(await run_next(agent), code=1)
    await reaches(cluster, "ERROR")
    assert (await cluster.post(PATH, {"id": 1})).status_code == 200
    for restarts in (0, 1):
        desired = await run_next(agent)
        assert (await trial(cluster))["restarts"] == restarts
        await agent.exit(desired, code=1)
    await reaches(cluster, "ERROR")
    attempts = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
    assert [each["runId"] for each in attempts] == [1, 2, 3, 4]
    status = await cluster.get("/detent/experiments/1/status")
    assert status["text"].startswith("failed: trial 1: out of restarts after 2 attempts")


async def test_a_retention_policy_that_is_being_applied_spares_a_continued_experiment(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    agent = await cluster.join()
    uuid = await complete_first(cluster, agent)
    chosen, candidates = [], retention_repository.candidates

    async def is_settled() -> bool:
        async with cluster.master.database.read() as session:
            return not await session.scalar(select(ExperimentRow.retention_due))

    await eventually(is_settled)  # the policy is applied once at the end of the experiment

    async def read_and_continue(session: Any, experiment_id: int) -> Any:
        rows = await candidates(session, experiment_id)
        answer = await cluster.post(PATH, {"id": experiment_id})
        assert answer.status_code == 200, answer.text
        chosen.append(rows)
        return rows

    monkeypatch.setattr(retention_repository, "candidates", read_and_continue)
    policy = {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 0}
    await cluster.client.patch("/api/v1/experiments/1", json={"checkpointStorage": policy})
    await eventually(lambda: bool(chosen))
    desired = await run_next(agent)
    assert desired.spec.environment["DET_LATEST_CHECKPOINT"] == uuid
    (checkpoint,) = (await cluster.get("/api/v1/experiments/1/checkpoints"))["checkpoints"]
    assert (checkpoint["uuid"], checkpoint["state"]) == (uuid, "STATE_COMPLETED")


async def test_a_continued_search_resumes_killed_trials_and_creates_missing_ones(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create(RANDOM)
    await agent.exit(await run_next(agent))

    async def has_second_trial() -> bool:
        return (await cluster.get("/api/v1/experiments/1"))["experiment"]["numTrials"] == 2

    await eventually(has_second_trial)
    desired = await run_next(agent)
    await cluster.post("/api/v1/experiments/1/kill")
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    await reaches(cluster, "CANCELED")
    before = await trial(cluster, 2)
    assert (await cluster.post(PATH, {"id": 1})).status_code == 200
    for number in (2, 3):
        desired = await run_next(agent)
        assert desired.spec.task_id == (await trial(cluster, number))["taskId"]
        await agent.exit(desired)

        async def is_done(number: int = number) -> bool:
            return (await trial(cluster, number))["state"] == "STATE_COMPLETED"

        await eventually(is_done)
    await reaches(cluster, "COMPLETED")
    assert (await trial(cluster, 2))["hparams"] == before["hparams"]
    decisions = (await cluster.get("/detent/trials/3/decisions"))["decisions"]
    assert [each["reason"] for each in decisions] == ["created: trial 3 of 3"]
    assert (await cluster.get("/api/v1/experiments/1"))["experiment"]["numTrials"] == 3
    again = await cluster.post(PATH, {"id": 1})
    assert again.status_code == 400, again.text
    assert "its search is over and all its trials (3) have completed" in again.text


async def test_a_continued_halving_search_goes_on_with_its_rungs(cluster: Cluster):
    agent = await cluster.join(slots=2)
    await cluster.create(HALVING)
    first, second = await agent.wait_for_desired(2)
    for desired in (first, second):
        await agent.run(desired)
    await cluster.post("/api/v1/experiments/1/kill")
    for desired in (first, second):
        await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    await reaches(cluster, "CANCELED")
    assert (await cluster.post(PATH, {"id": 1})).status_code == 200
    containers = await agent.wait_for_desired(2)
    assert {desired.allocation_id.rpartition(".")[2] for desired in containers} == {"2"}
    for desired in containers:
        await agent.run(desired)
        await agent.exit(desired)
    desired = await run_next(agent)
    await agent.exit(desired)
    await reaches(cluster, "COMPLETED")
    assert (await cluster.get("/api/v1/experiments/1"))["experiment"]["numTrials"] == 3


@pytest.mark.parametrize(
    ("override", "code", "text"),
    [
        ("searcher: {metric: accuracy}", "E211", '"searcher.metric" cannot change when an experiment is continued'),
        ("searcher: {name: random, max_trials: 2}", "E211", '"searcher.name" cannot change'),
        ("checkpoint_storage: {host_path: /elsewhere}", "E211", "its checkpoints are there"),
        ("max_restart: 3", "E203", 'unknown field "max_restart"'),
        ("resources: {slots_per_trial: 64}", "E210", "64"),
    ],
)
async def test_an_override_that_is_not_allowed_is_refused_with_its_line(
    cluster: Cluster, override: str, code: str, text: str
):
    agent = await cluster.join()
    await complete_first(cluster, agent)
    answer = await cluster.post(PATH, {"id": 1, "overrideConfig": override})
    assert answer.status_code == 400, answer.text
    (diagnostic, *_) = answer.json()["diagnostics"]
    assert (diagnostic["code"], diagnostic["line"]) == (code, 1)
    assert text in diagnostic["message"]
    assert await cluster.state(1) == "STATE_COMPLETED"


async def test_an_override_changes_name_priority_and_hyperparameters(cluster: Cluster):
    agent = await cluster.join()
    await complete_first(cluster, agent)
    override = "name: longer\nlabels: [a]\nresources: {priority: 50, weight: 2}\nhyperparameters: {lr: 0.5}\n"
    answer = await cluster.post(PATH, {"id": 1, "overrideConfig": override})
    assert answer.status_code == 200, answer.text
    experiment = (await cluster.get("/api/v1/experiments/1"))["experiment"]
    assert (experiment["name"], experiment["labels"]) == ("longer", ["a"])
    assert (await trial(cluster))["hparams"] == {"lr": 0.5}

    async def queued() -> dict[str, Any] | None:
        jobs = (await cluster.get("/api/v1/job-queues-v2"))["jobs"]
        return jobs[0].get("full", jobs[0]) if jobs else None

    job = await eventually(queued)
    assert (job["priority"], job["weight"]) == (50, 2.0)


async def test_an_edit_that_is_made_while_an_override_is_checked_is_kept(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    agent = await cluster.join()
    await complete_first(cluster, agent)
    original = Creator.check_environment
    edits = [{"labels": ["new"], "resources": {"priority": 60}}]

    async def edited(self: Creator, *arguments: Any) -> None:
        await original(self, *arguments)
        if edits:
            answer = await cluster.client.patch("/api/v1/experiments/1", json=edits.pop())
            assert answer.status_code == 200, answer.text

    monkeypatch.setattr(Creator, "check_environment", edited)
    answer = await cluster.post(PATH, {"id": 1, "overrideConfig": "hyperparameters: {lr: 0.5}"})
    assert answer.status_code == 200, answer.text
    experiment = (await cluster.get("/api/v1/experiments/1"))["experiment"]
    assert (experiment["labels"], experiment["config"]["resources"]["priority"]) == (["new"], 60)
    assert (await trial(cluster))["hparams"] == {"lr": 0.5}


async def test_only_an_ended_experiment_that_is_not_archived_can_be_continued(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create(LIMITED)
    early = await cluster.post(PATH, {"id": 1})
    assert early.status_code == 400
    assert "only an experiment that has ended can be continued" in early.text
    await agent.exit(await run_next(agent))
    await reaches(cluster, "COMPLETED")
    assert (await cluster.get("/detent/experiments/1/status"))["can"]["continue"] is True
    await cluster.post("/api/v1/experiments/1/archive")
    status = await cluster.get("/detent/experiments/1/status")
    assert (status["can"]["continue"], status["why"]["continue"]) == (False, "it is archived; unarchive it first")
    archived = await cluster.post(PATH, {"id": 1})
    assert "is archived; unarchive it first" in archived.text
    assert (await cluster.post(PATH, {"id": 99})).status_code == 404


async def test_the_configuration_of_a_search_cannot_change(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create(RANDOM)
    for _ in range(3):
        await agent.exit(await run_next(agent), code=1)
    await reaches(cluster, "ERROR")
    answer = await cluster.post(PATH, {"id": 1, "overrideConfig": "max_restarts: 3"})
    assert answer.status_code == 400
    assert "is a search (random); its configuration cannot change when it continues" in answer.text


async def test_a_search_whose_method_runs_in_a_task_says_that_it_cannot_be_continued(cluster: Cluster):
    text = RANDOM.replace("name: random, metric: loss, max_trials: 3", "name: optuna, metric: loss, max_trials: 3")
    number = await cluster.create(text)
    await cluster.post(f"/api/v1/experiments/{number}/kill")
    await reaches(cluster, "CANCELED", number)
    answer = await cluster.client.post(PATH, json={"id": number})
    assert answer.status_code == 400
    assert "experiment 1 cannot be continued: the method of its search (optuna) runs in a task" in answer.text
