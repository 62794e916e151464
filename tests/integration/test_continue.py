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


async def started(agent: FakeAgent) -> DesiredContainer:
    """Waits for one container that is not running yet, and runs it."""

    async def fresh() -> DesiredContainer | None:
        wishes = [wish for wish in await agent.wish() if wish.state == "running"]
        return wishes[-1] if wishes else None

    wish = await eventually(fresh)
    await agent.run(wish)
    return wish


async def reaches(one: Cluster, state: str, experiment: int = 1) -> None:
    async def is_there() -> bool:
        return await one.state(experiment) == f"STATE_{state}"

    await eventually(is_there)


async def trial(one: Cluster, trial_id: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = (await one.get(f"/api/v1/trials/{trial_id}"))["trial"]
    return found


async def saved(one: Cluster, wish: DesiredContainer, steps: int) -> str:
    uuid = f"c0ffee00-0000-4000-8000-{steps:012}"
    body = {
        "taskId": wish.spec.task_id,
        "allocationId": wish.allocation_id,
        "uuid": uuid,
        "reportTime": "2026-01-01T00:00:00Z",
        "resources": {"weights": "1"},
        "metadata": {"steps_completed": steps},
        "state": "STATE_COMPLETED",
    }
    answer = await one.post("/api/v1/checkpoints", body, **one.as_task(wish.allocation_id))
    assert answer.status_code == 200, answer.text
    return uuid


async def ended(one: Cluster, agent: FakeAgent) -> str:
    """Experiment 1 has completed with a checkpoint at step 4. Returns the checkpoint."""
    await one.create(LIMITED)
    wish = await started(agent)
    uuid = await saved(one, wish, 4)
    await agent.exit(wish)
    await reaches(one, "COMPLETED")
    return uuid


async def test_a_completed_trial_trains_further_from_its_checkpoint_with_a_longer_length(one: Cluster):
    agent = await one.join()
    uuid = await ended(one, agent)
    answer = await one.post(PATH, {"id": 1, "overrideConfig": "searcher: {max_length: {batches: 9}}"})
    assert answer.status_code == 200, answer.text
    shown = answer.json()["experiment"]
    assert (shown["id"], shown["progress"], shown["endTime"]) == (1, 0.0, None)
    assert shown["config"]["searcher"]["max_length"] == {"batches": 9}
    wish = await started(agent)
    assert wish.allocation_id.endswith(".2")
    environment = wish.spec.environment
    assert (environment["DET_LATEST_CHECKPOINT"], environment["DET_STEPS_COMPLETED"]) == (uuid, "4")
    assert (await trial(one))["state"] == "STATE_RUNNING"
    events = (await one.get("/detent/events", kind="continued"))["events"]
    assert events[0]["text"] == "admin continued experiment 1 with another searcher.max_length.batches"
    await agent.exit(wish)
    await reaches(one, "COMPLETED")
    assert (await one.get("/api/v1/experiments/1"))["experiment"]["progress"] == 1.0


async def test_a_failed_trial_has_all_its_restarts_again(one: Cluster):
    agent = await one.join()
    await one.create(LIMITED)
    for _ in range(2):
        await agent.exit(await started(agent), code=1)
    await reaches(one, "ERROR")
    assert (await one.post(PATH, {"id": 1})).status_code == 200
    for restarts in (0, 1):
        wish = await started(agent)
        assert (await trial(one))["restarts"] == restarts
        await agent.exit(wish, code=1)
    await reaches(one, "ERROR")
    attempts = (await one.get("/detent/trials/1/attempts"))["attempts"]
    assert [each["runId"] for each in attempts] == [1, 2, 3, 4]
    status = await one.get("/detent/experiments/1/status")
    assert status["text"].startswith("failed: trial 1: out of restarts after 2 attempts")


async def test_its_checkpoints_are_kept_from_a_policy_that_is_being_applied(
    one: Cluster, monkeypatch: pytest.MonkeyPatch
):
    agent = await one.join()
    uuid = await ended(one, agent)
    chosen, candidates = [], retention_repository.candidates

    async def is_settled() -> bool:
        async with one.master.database.read() as session:
            return not await session.scalar(select(ExperimentRow.retention_due))

    await eventually(is_settled)  # the policy that the experiment ended with

    async def and_somebody_continues(session: Any, experiment_id: int) -> Any:
        found = await candidates(session, experiment_id)
        answer = await one.post(PATH, {"id": experiment_id})
        assert answer.status_code == 200, answer.text
        chosen.append(found)
        return found

    monkeypatch.setattr(retention_repository, "candidates", and_somebody_continues)
    policy = {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 0}
    await one.client.patch("/api/v1/experiments/1", json={"checkpointStorage": policy})
    await eventually(lambda: bool(chosen))
    wish = await started(agent)
    assert wish.spec.environment["DET_LATEST_CHECKPOINT"] == uuid
    (found,) = (await one.get("/api/v1/experiments/1/checkpoints"))["checkpoints"]
    assert (found["uuid"], found["state"]) == (uuid, "STATE_COMPLETED")


async def test_a_search_resumes_what_was_killed_and_creates_what_was_missing(one: Cluster):
    agent = await one.join()
    await one.create(RANDOM)
    await agent.exit(await started(agent))

    async def second() -> bool:
        return (await one.get("/api/v1/experiments/1"))["experiment"]["numTrials"] == 2

    await eventually(second)
    wish = await started(agent)
    await one.post("/api/v1/experiments/1/kill")
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    await reaches(one, "CANCELED")
    before = await trial(one, 2)
    assert (await one.post(PATH, {"id": 1})).status_code == 200
    for number in (2, 3):
        wish = await started(agent)
        assert wish.spec.task_id == (await trial(one, number))["taskId"]
        await agent.exit(wish)

        async def is_done(number: int = number) -> bool:
            return (await trial(one, number))["state"] == "STATE_COMPLETED"

        await eventually(is_done)
    await reaches(one, "COMPLETED")
    assert (await trial(one, 2))["hparams"] == before["hparams"]
    decisions = (await one.get("/detent/trials/3/decisions"))["decisions"]
    assert [each["reason"] for each in decisions] == ["created: trial 3 of 3"]
    assert (await one.get("/api/v1/experiments/1"))["experiment"]["numTrials"] == 3
    again = await one.post(PATH, {"id": 1})
    assert again.status_code == 400, again.text
    assert "its search is over and all its trials (3) have completed" in again.text


async def test_a_halving_search_goes_on_with_its_rungs(one: Cluster):
    agent = await one.join(slots=2)
    await one.create(HALVING)
    first, second = await agent.wished(2)
    for wish in (first, second):
        await agent.run(wish)
    await one.post("/api/v1/experiments/1/kill")
    for wish in (first, second):
        await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    await reaches(one, "CANCELED")
    assert (await one.post(PATH, {"id": 1})).status_code == 200
    wishes = await agent.wished(2)
    assert {wish.allocation_id.rpartition(".")[2] for wish in wishes} == {"2"}
    for wish in wishes:
        await agent.run(wish)
        await agent.exit(wish)
    wish = await started(agent)
    await agent.exit(wish)
    await reaches(one, "COMPLETED")
    assert (await one.get("/api/v1/experiments/1"))["experiment"]["numTrials"] == 3


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
async def test_what_cannot_change_is_named_with_its_place(one: Cluster, override: str, code: str, text: str):
    agent = await one.join()
    await ended(one, agent)
    answer = await one.post(PATH, {"id": 1, "overrideConfig": override})
    assert answer.status_code == 400, answer.text
    (found, *_) = answer.json()["diagnostics"]
    assert (found["code"], found["line"]) == (code, 1)
    assert text in found["message"]
    assert await one.state(1) == "STATE_COMPLETED"


async def test_other_settings_change_name_priority_and_hyperparameters(one: Cluster):
    agent = await one.join()
    await ended(one, agent)
    override = "name: longer\nlabels: [a]\nresources: {priority: 50, weight: 2}\nhyperparameters: {lr: 0.5}\n"
    answer = await one.post(PATH, {"id": 1, "overrideConfig": override})
    assert answer.status_code == 200, answer.text
    shown = (await one.get("/api/v1/experiments/1"))["experiment"]
    assert (shown["name"], shown["labels"]) == ("longer", ["a"])
    assert (await trial(one))["hparams"] == {"lr": 0.5}

    async def queued() -> dict[str, Any] | None:
        jobs = (await one.get("/api/v1/job-queues-v2"))["jobs"]
        return jobs[0].get("full", jobs[0]) if jobs else None

    job = await eventually(queued)
    assert (job["priority"], job["weight"]) == (50, 2.0)


async def test_only_what_has_ended_and_is_not_archived_can_be_continued(one: Cluster):
    agent = await one.join()
    await one.create(LIMITED)
    early = await one.post(PATH, {"id": 1})
    assert early.status_code == 400
    assert "only an experiment that has ended can be continued" in early.text
    await agent.exit(await started(agent))
    await reaches(one, "COMPLETED")
    assert (await one.get("/detent/experiments/1/status"))["can"]["continue"] is True
    await one.post("/api/v1/experiments/1/archive")
    status = await one.get("/detent/experiments/1/status")
    assert (status["can"]["continue"], status["why"]["continue"]) == (False, "it is archived; unarchive it first")
    archived = await one.post(PATH, {"id": 1})
    assert "is archived; unarchive it first" in archived.text
    assert (await one.post(PATH, {"id": 99})).status_code == 404


async def test_the_configuration_of_a_search_cannot_change(one: Cluster):
    agent = await one.join()
    await one.create(RANDOM)
    for _ in range(3):
        await agent.exit(await started(agent), code=1)
    await reaches(one, "ERROR")
    answer = await one.post(PATH, {"id": 1, "overrideConfig": "max_restarts: 3"})
    assert answer.status_code == 400
    assert "is a search (random); its configuration cannot change when it continues" in answer.text


async def test_a_search_whose_method_runs_in_a_task_says_that_it_cannot_be_continued(one: Cluster):
    text = RANDOM.replace("name: random, metric: loss, max_trials: 3", "name: optuna, metric: loss, max_trials: 3")
    number = await one.create(text)
    await one.post(f"/api/v1/experiments/{number}/kill")
    await reaches(one, "CANCELED", number)
    answer = await one.client.post(PATH, json={"id": number})
    assert answer.status_code == 400
    assert "experiment 1 cannot be continued: the method of its search (optuna) runs in a task" in answer.text
