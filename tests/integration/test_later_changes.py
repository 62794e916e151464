"""Changes of an experiment after its submission: the same rules apply, and its configuration follows."""

from typing import Any

import pytest
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

CONFIG = """
name: example
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
"""


async def config_of(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get("/api/v1/experiments/1"))["experiment"]["config"]
    return found


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"checkpointStorage": {"saveExperimentBest": -1}},
            '"checkpoint_storage.save_experiment_best": must be at least',
        ),
        ({"checkpointStorage": {"saveTrialLatest": -7}}, '"checkpoint_storage.save_trial_latest": must be at least 0'),
        ({"resources": {"maxSlots": -1}}, '"resources.max_slots": must be at least 0, is -1'),
        ({"resources": {"weight": 0}}, '"resources.weight": must be more than 0'),
        ({"resources": {"weight": -2.5}}, '"resources.weight": must be more than 0'),
        ({"resources": {"priority": 100}}, "priority"),
        ({"name": " "}, "a name must not be empty"),
    ],
)
async def test_a_value_that_submission_refuses_is_refused_later_too(
    cluster: Cluster, body: dict[str, Any], message: str
):
    await cluster.create(CONFIG)
    before = await config_of(cluster)
    answer = await cluster.client.patch("/api/v1/experiments/1", json=body)
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["error"]["error"]
    assert await config_of(cluster) == before


async def test_a_changed_name_description_and_labels_are_in_the_configuration(cluster: Cluster):
    await cluster.create(CONFIG)
    body = {"name": "another", "description": "what it is", "labels": ["b", "a"]}
    assert (await cluster.client.patch("/api/v1/experiments/1", json=body)).status_code == 200
    config = await config_of(cluster)
    assert {name: config[name] for name in body} == {**body, "labels": ["a", "b"]}
    assert (await cluster.client.put("/api/v1/experiments/1/labels/c")).status_code == 200
    assert (await config_of(cluster))["labels"] == ["a", "b", "c"]


async def archived_experiment(cluster: Cluster) -> str:
    path = f"/api/v1/experiments/{await cluster.create(CONFIG, activate=False)}"
    assert (await cluster.post(f"{path}/kill")).status_code == 200

    async def has_ended() -> bool:
        return bool((await cluster.get(path))["experiment"]["state"] == "STATE_CANCELED")

    await eventually(has_ended)
    assert (await cluster.post(f"{path}/archive")).status_code == 200
    return path


async def test_name_description_notes_and_labels_of_an_archived_experiment_can_be_changed(cluster: Cluster):
    path = await archived_experiment(cluster)
    body = {"name": "kept", "description": "why", "notes": "a note", "labels": ["a"]}
    answer = await cluster.client.patch(path, json=body)
    assert answer.status_code == 200, answer.text
    assert (await cluster.client.put(f"{path}/labels/b")).json() == {"labels": ["a", "b"]}
    assert (await cluster.client.delete(f"{path}/labels/a")).json() == {"labels": ["b"]}
    experiment = (await cluster.get(path))["experiment"]
    assert {name: experiment[name] for name in body} == {**body, "labels": ["b"]}
    refused = await cluster.client.patch(path, json={"name": "x", "checkpointStorage": {"saveTrialBest": 0}})
    assert "is archived; unarchive it first" in refused.text
    assert (await cluster.get(path))["experiment"]["name"] == "kept"


async def test_archiving_and_unarchiving_twice_is_refused(cluster: Cluster):
    path = await archived_experiment(cluster)
    again = await cluster.post(f"{path}/archive")
    assert (again.status_code, again.json()["error"]["error"]) == (400, "experiment 1 is archived already")
    assert (await cluster.post(f"{path}/unarchive")).status_code == 200
    again = await cluster.post(f"{path}/unarchive")
    assert (again.status_code, again.json()["error"]["error"]) == (400, "experiment 1 is not archived")
    many = await cluster.post("/api/v1/projects/1/experiments/unarchive", {"experimentIds": [1]})
    assert many.json() == {"results": [{"id": 1, "error": ""}]}


async def test_null_leaves_priority_and_weight_as_they_are_and_takes_the_limit_away(cluster: Cluster):
    await cluster.create(CONFIG + "resources: {priority: 50, weight: 2, max_slots: 3}\n", activate=False)
    body = {"resources": {"priority": None, "weight": None, "maxSlots": None}}
    answer = await cluster.client.patch("/api/v1/experiments/1", json=body)
    assert answer.status_code == 200, answer.text
    resources = answer.json()["experiment"]["config"]["resources"]
    assert (resources["priority"], resources["weight"], resources["max_slots"]) == (50, 2.0, None)
