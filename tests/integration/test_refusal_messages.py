"""Errors of invalid requests are sentences of the product, never the text of a library's exception."""

import re
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster
from tests.support.seeded_cluster import seed_cluster

TEXTS_OF_LIBRARIES = re.compile(
    r"Input should|valid (integer|string|dictionary)|Field required|Extra inputs|Value error|validation error|"
    r"KeyError|ValueError|TypeError|Expecting value|\(char \d+\)|Expected `|while (parsing|scanning)|did not find expected"
)
REQUESTS: list[tuple[str, str, dict[str, Any], str]] = [
    ("GET", "/api/v1/experiments", {"params": {"limit": "x"}}, "limit: expected a whole number, got a text"),
    ("GET", "/api/v1/experiments", {"params": {"archived": "x"}}, "archived: expected true or false, got a text"),
    ("PATCH", "/api/v1/experiments/1", {"json": {"name": 5}}, "name: expected a text, got a whole number"),
    ("PATCH", "/api/v1/experiments/1", {"json": {"labels": "a"}}, "labels: expected a list, got a text"),
    ("PATCH", "/api/v1/experiments/1", {"json": {"resources": {"maxSlots": 2.5}}}, "expected a whole number"),
    ("PATCH", "/api/v1/experiments/1", {"content": "{"}, "the body is not JSON: line 1, column 2"),
    ("PATCH", "/api/v1/experiments/1", {"content": b'{"name": "\xff"}'}, "the body is not valid text: byte 10"),
    ("POST", "/api/v1/experiments-search", {"json": {"filter": "{"}}, "the filter is not JSON: line 1, column 2"),
    ("POST", "/api/v1/experiments", {"json": {}}, "config: is missing"),
    ("POST", "/api/v1/experiments", {"json": {"config": "a: [1"}}, "a comma or a ] is missing"),
    ("POST", "/api/v1/experiments", {"json": {"config": CONFIG + "max_restarts: 2.5"}}, "expected a whole number"),
    ("GET", "/detent/trials/1/logs", {"params": {"limit": "0"}}, "limit: must be at least 1"),
    ("POST", "/api/v1/trials/1/metrics", {"json": {"metrics": {"trialRunId": "a"}}}, "expected a whole number"),
    ("POST", "/api/v1/trials/1/metrics", {"content": "{"}, "it is not JSON"),
    ("POST", "/api/v1/preview-hp-search", {"json": {"config": 5}}, "config: expected a mapping"),
    ("POST", "/api/v1/job-queues", {"json": {"updates": [{"jobId": 5}]}}, "expected a text, got a whole number"),
    ("POST", "/api/v1/commands", {"json": {"config": {"resources": {"slots": "a"}}}}, "expected a whole number"),
]


@pytest.mark.parametrize(("method", "path", "options", "expected"), REQUESTS)
async def test_an_invalid_request_is_refused_with_a_sentence(
    cluster: Cluster, method: str, path: str, options: dict[str, Any], expected: str
) -> None:
    if "/1" in path:
        await seed_cluster(cluster)
    headers = {"content-type": "application/json"} if "content" in options else {}
    answer = await cluster.client.request(method, path, headers=headers, **options)
    assert answer.status_code == 400, answer.text
    assert TEXTS_OF_LIBRARIES.search(answer.text) is None, answer.text
    assert expected in answer.text.replace('\\"', '"'), answer.text


async def test_later_changes_accept_whole_numbers_with_a_decimal_point(cluster: Cluster) -> None:
    await seed_cluster(cluster)
    changes = {"resources": {"maxSlots": 4.0, "priority": 5e1}, "checkpointStorage": {"saveTrialBest": 2.0}}
    answer = await cluster.client.patch("/api/v1/experiments/1", json=changes)
    assert answer.status_code == 200, answer.text
    config = (await cluster.get("/api/v1/experiments/1"))["experiment"]["config"]
    resources = (config["resources"]["max_slots"], config["resources"]["priority"])
    assert (*resources, config["checkpoint_storage"]["save_trial_best"]) == (4, 50, 2)
    assert not any(isinstance(value, float) for value in resources)
