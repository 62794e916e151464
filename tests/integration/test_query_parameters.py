"""Query parameters of the Determined API: each takes effect or answers 501, and none is ignored."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import PASSWORD, Cluster
from tests.support.makers import add_experiment, add_project, add_trial
from tests.support.seeded_cluster import CHECKPOINT, seed_cluster

from determined import __version__
from determined.errors import NotFound
from determined.states import CheckpointState
from determined_master.api.json_lines import json_lines
from determined_master.checkpoints import repository as checkpoints


def documented() -> list[tuple[str, str, list[str]]]:
    """Returns method, path and query parameters of each operation in the reference of the Determined API."""
    lines = (Path(__file__).parent / "wire_queries.txt").read_text().splitlines()
    return [(method, path, names) for method, path, *names in map(str.split, lines)]


def shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


async def test_each_parameter_of_a_served_operation_is_known(cluster: Cluster):
    document = (await cluster.client.get("/detent/openapi.json")).json()
    served = {
        (method.upper(), shape(path)): {each["name"] for each in operation.get("parameters", ())}
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    unknown = {
        f"{method} {path}": sorted(set(names) - served[method, shape(path)])
        for method, path, names in documented()
        if (method, shape(path)) in served and set(names) - served[method, shape(path)]
    }
    assert unknown == {}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"experimentIdFilter.gt": 2}, [3, 4]),
        ({"experimentIdFilter.gte": 2}, [2, 3, 4]),
        ({"experimentIdFilter.lt": 2}, [1]),
        ({"experimentIdFilter.lte": 2}, [1, 2]),
        ({"experimentIdFilter.incl": [1, 4, 9]}, [1, 4]),
        ({"experimentIdFilter.notIn": [1, 4]}, [2, 3]),
        ({"experimentIdFilter.gt": 1, "experimentIdFilter.lte": 3, "experimentIdFilter.notIn": 2}, [3]),
    ],
)
async def test_experiments_are_filtered_by_id(cluster: Cluster, query: dict[str, Any], expected: list[int]):
    async with cluster.master.database.write() as session:
        for _ in range(4):
            await add_experiment(session)
    listed = await cluster.get("/api/v1/experiments", **query)
    assert [each["id"] for each in listed["experiments"]] == expected
    assert listed["pagination"]["total"] == len(expected)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/api/v1/experiments/1/trials", {"sortBy": "SORT_BY_LOG_RETENTION_DAYS"}),
        ("/api/v1/users", {"roleIdAssignedDirectlyToUser": 1}),
        ("/api/v1/workspaces/1/projects", {"sortBy": "SORT_BY_LAST_EXPERIMENT_START_TIME"}),
        ("/api/v1/projects/1/columns", {"tableType": "TABLE_TYPE_RUN"}),
        ("/api/v1/trials/1/workloads", {"sortKey": "loss"}),
        ("/api/v1/trials/1/workloads", {"metricType": "METRIC_TYPE_PROFILING"}),
    ],
)
async def test_an_unsupported_parameter_or_value_answers_501(cluster: Cluster, path: str, query: dict[str, Any]):
    async with cluster.master.database.write() as session:
        await add_trial(session, await add_experiment(session))
    answer = await cluster.client.get(path, params=query)
    assert answer.status_code == 501, answer.text
    assert "not supported" in answer.json()["error"]["error"]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/api/v1/experiments", {"sortBy": "SORT_BY_COLOUR"}),
        ("/api/v1/experiments/1/trials", {"sortBy": "SORT_BY_COLOUR"}),
        ("/api/v1/experiments/1/checkpoints", {"sortByAttr": "SORT_BY_COLOUR"}),
        ("/api/v1/agents", {"sortBy": "SORT_BY_COLOUR"}),
        ("/api/v1/commands", {"sortBy": "SORT_BY_COLOUR"}),
        ("/api/v1/users", {"sortBy": "SORT_BY_COLOUR"}),
        ("/api/v1/workspaces", {"sortBy": "SORT_BY_COLOUR"}),
        ("/api/v1/trials/1/workloads", {"filter": "FILTER_OPTION_COLOUR"}),
        ("/api/v1/trials/1/workloads", {"metricType": "METRIC_TYPE_COLOUR"}),
    ],
)
async def test_a_value_that_its_enum_does_not_have_answers_400(cluster: Cluster, path: str, query: dict[str, Any]):
    async with cluster.master.database.write() as session:
        await add_trial(session, await add_experiment(session))
    answer = await cluster.client.get(path, params=query)
    assert answer.status_code == 400, answer.text
    assert "COLOUR is not supported; valid " in answer.json()["error"]["error"]


@pytest.mark.parametrize(
    "query",
    [
        {"orderBy": "ORDER_BY_COLOUR"},
        {"follow": "true", "limit": 3},
        {"searchText": "(", "enableRegex": "true"},
        {"levels": "LOUD"},
        {"timestampAfter": "soon"},
    ],
)
async def test_a_wrong_parameter_of_a_stream_is_refused_before_it_begins(cluster: Cluster, query: dict[str, Any]):
    seeded = await seed_cluster(cluster)
    for path in ("/api/v1/trials/1/logs", f"/api/v1/tasks/{seeded.task}/logs"):
        answer = await cluster.client.get(path, params=query)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["reason"] == "InvalidArgument"


async def test_an_error_within_a_stream_has_the_form_that_its_clients_expect():
    async def rows() -> AsyncIterator[dict[str, int]]:
        yield {"id": 1}
        raise NotFound("it is gone")

    lines = [json.loads(line) async for line in json_lines(rows()).body_iterator]
    failure = {"grpcCode": 5, "httpCode": 404, "message": "it is gone", "httpStatus": "Not Found", "details": []}
    assert lines == [{"result": {"id": 1}}, {"error": failure}]


async def test_an_unknown_order_or_level_is_refused(cluster: Cluster):
    await seed_cluster(cluster)
    assert (await cluster.client.get("/api/v1/users?orderBy=DOWN")).status_code == 400
    assert (await cluster.client.get("/api/v1/trials/1/logs?levels=LOUD")).status_code == 400
    assert "hello" in (await cluster.client.get("/api/v1/trials/1/logs?levels=LOG_LEVEL_INFO")).text


async def test_agents_are_sorted_and_slots_and_containers_are_left_out_on_request(cluster: Cluster):
    await cluster.join("b")
    await cluster.join("a")
    listed = await cluster.get("/api/v1/agents", sortBy="SORT_BY_ID", orderBy="ORDER_BY_DESC", excludeSlots="true")
    assert [(each["id"], each["slots"]) for each in listed["agents"]] == [("b", {}), ("a", {})]
    await cluster.create()
    listed = (await cluster.get("/api/v1/agents"))["agents"]
    assert all(each["slots"] for each in listed)
    listed = (await cluster.get("/api/v1/agents", excludeContainers="true"))["agents"]
    assert [each["containers"] for each in listed] == [{}, {}]


async def test_users_are_sorted_by_name_and_display_name(cluster: Cluster):
    await cluster.post("/api/v1/users", {"user": {"username": "zoe", "displayName": "Aa"}, "password": PASSWORD})
    listed = await cluster.get("/api/v1/users", sortBy="SORT_BY_USER_NAME", orderBy="ORDER_BY_DESC")
    assert [each["username"] for each in listed["users"]] == ["zoe", "determined", "admin"]
    listed = await cluster.get("/api/v1/users", sortBy="SORT_BY_NAME")
    assert [each["username"] for each in listed["users"]] == ["zoe", "admin", "determined"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["Uncategorized", "beta", "alpha"]),
        ({"sortBy": "SORT_BY_NAME", "orderBy": "ORDER_BY_DESC"}, ["beta", "alpha", "Uncategorized"]),
        ({"archived": "true"}, ["alpha"]),
        ({"users": "determined"}, ["beta"]),
        ({"userIds": 1}, ["Uncategorized", "alpha"]),
    ],
)
async def test_projects_are_filtered_and_sorted(cluster: Cluster, query: dict[str, Any], expected: list[str]):
    async with cluster.master.database.write() as session:
        await add_project(session, "beta", user_id=2)
        await add_project(session, "alpha", archived=True)
    listed = await cluster.get("/api/v1/workspaces/1/projects", **query)
    assert [each["name"] for each in listed["projects"]] == expected


async def test_workspaces_are_filtered_by_owner_and_pin(cluster: Cluster):
    for query, count in (({"userIds": 1}, 1), ({"users": "determined"}, 0), ({"pinned": "true"}, 0), ({}, 1)):
        assert len((await cluster.get("/api/v1/workspaces", **query))["workspaces"]) == count


async def test_workloads_are_filtered_by_kind_and_by_deleted_checkpoints(cluster: Cluster):
    await seed_cluster(cluster)
    listed = (await cluster.get("/api/v1/trials/1/workloads", filter="FILTER_OPTION_CHECKPOINT_OR_VALIDATION"))[
        "workloads"
    ]
    assert [kind for each in listed for kind, value in each.items() if value] == ["validation", "checkpoint"]
    async with cluster.master.database.write() as session:
        row = await checkpoints.get(session, CHECKPOINT)
        await checkpoints.change(session, row, state=CheckpointState.DELETED)
    listed = (await cluster.get("/api/v1/trials/1/workloads", removeDeletedCheckpoints="true"))["workloads"]
    assert [kind for each in listed for kind, value in each.items() if value] == ["validation", "training"]


async def test_the_version_of_an_agent_is_the_version_in_info(cluster: Cluster):
    agent = await cluster.join()
    assert (await cluster.get(f"/api/v1/agents/{agent.id}"))["agent"]["version"] == (await cluster.get("/info"))[
        "version"
    ]
    assert (await cluster.get("/info"))["detent_version"] == __version__


async def test_a_nul_in_a_line_or_a_metric_is_stored_as_its_symbol(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    task = cluster.as_task(seeded.allocation)
    line = {"taskId": seeded.task, "log": "be\0fore"}
    assert (await cluster.post("/api/v1/task/logs", {"logs": [line]}, **task)).status_code == 200
    lines = (await cluster.get("/detent/trials/1/logs"))["lines"]
    assert lines[-1]["text"] == "be␀fore"
    metrics = {"lo\0ss": 1.0, "nested": {"a\0": "b\0"}}
    report = {"trialRunId": 1, "stepsCompleted": 3, "metrics": {"avgMetrics": metrics, "batchMetrics": [{"\0": 1}]}}
    assert (
        await cluster.post("/api/v1/trials/1/metrics", {"group": "t\0", "metrics": report}, **task)
    ).status_code == 200
    workloads = (await cluster.get("/api/v1/trials/1/workloads", group="t␀", includeBatchMetrics="true"))["workloads"]
    (training,) = [each["training"]["metrics"] for each in workloads if "training" in each]
    assert training["avgMetrics"] == {"lo␀ss": 1.0, "nested": {"a␀": "b␀"}}
    assert training["batchMetrics"] == [{"␀": 1}]
