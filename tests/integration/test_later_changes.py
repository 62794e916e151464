"""Values of an experiment that are changed later: the rules of submission hold, and its configuration follows."""

from typing import Any

import pytest
from tests.support.cluster import Cluster

CONFIG = """
name: example
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
"""


async def config_of(one: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = (await one.get("/api/v1/experiments/1"))["experiment"]["config"]
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
async def test_a_value_that_submission_refuses_is_refused_later_too(one: Cluster, body: dict[str, Any], message: str):
    await one.create(CONFIG)
    before = await config_of(one)
    answer = await one.client.patch("/api/v1/experiments/1", json=body)
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["error"]["error"]
    assert await config_of(one) == before


async def test_a_changed_name_description_and_labels_are_in_the_configuration(one: Cluster):
    await one.create(CONFIG)
    body = {"name": "another", "description": "what it is", "labels": ["b", "a"]}
    assert (await one.client.patch("/api/v1/experiments/1", json=body)).status_code == 200
    config = await config_of(one)
    assert {name: config[name] for name in body} == {**body, "labels": ["a", "b"]}
    assert (await one.client.put("/api/v1/experiments/1/labels/c")).status_code == 200
    assert (await config_of(one))["labels"] == ["a", "b", "c"]
