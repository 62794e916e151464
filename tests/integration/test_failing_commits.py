"""Failing commits: every write route answers with a 5xx and changes nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import event, update
from starlette.routing import Route
from tests.support.checkpoints import checkpoint_uuid
from tests.support.cluster import CONFIG, Cluster, FakeAgent
from tests.support.columns import update_columns
from tests.support.makers import add_experiment, add_project
from tests.support.search_runner import OWN, container

from determined.states import CheckpointState
from determined_master.db.models import CheckpointRow
from determined_master.db.sqlite.connection import SqliteConnection

pytestmark = [pytest.mark.sqlite, pytest.mark.budget(15, "calls every route that writes")]

KEPT, TO_DELETE, TO_REMOVE = checkpoint_uuid(1), checkpoint_uuid(2), checkpoint_uuid(4)
READ_ONLY_POSTS = {
    "/detent/contexts/{digest}": "stores a blob by its content, no row",
    "/detent/tasks/{task_id}/streams": "keeps its streams in memory",
    "/detent/tasks/{task_id}/open": "keeps its tickets in memory",
    "/api/v1/runs/start": "reads only",
    "/api/v1/experiments/{experiment_id}/file": "reads only",
    "/detent/series": "reads only",
    "/detent/trials/summaries": "reads only",
    "/detent/config/check": "looks at a text",
    "/api/v1/preview-hp-search": "looks at a configuration",
    "/api/v1/allocations/{allocation_id}/acceleratorData": "keeps nothing",
    "/detent/experiments/allowed-actions": "reads only",
    "/detent/experiments/search": "reads only",
    "/detent/experiments/search/ids": "reads only",
    "/detent/experiments/search/groups": "reads only",
    "/api/v1/experiments-search": "reads only",
}


@contextmanager
def failing_commits(cluster: Cluster) -> Iterator[None]:
    def fail(_connection: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error (a test's)")

    async def fail_later(connection: SqliteConnection) -> None:
        fail(connection)

    engine = cluster.master.database.group_engine
    event.listen(engine, "commit", fail)
    try:
        with patch.object(SqliteConnection, "commit", fail_later):
            yield
    finally:
        event.remove(engine, "commit", fail)


def dump(cluster: Cluster) -> list[str]:
    """Returns every row of every table except events, which the loops write too."""
    connection = sqlite3.connect(cluster.master.settings.data / "master.sqlite")
    try:
        return [line for line in connection.iterdump() if 'INTO "events"' not in line]
    finally:
        connection.close()


async def own_search(cluster: Cluster, agent: FakeAgent) -> tuple[int, dict[str, str]]:
    """Creates an experiment whose search runs in a task; returns its id and the headers of the task."""
    experiment_id = await cluster.create(OWN)
    desired = await container(agent, "SEARCH")
    await agent.run(desired)
    return experiment_id, cluster.as_task(desired.allocation_id)


async def requests(cluster: Cluster) -> dict[tuple[str, str], tuple[str, Any, dict[str, str]]]:
    """Returns one request for each write route, which would change something: path, body, headers."""
    agent = await cluster.join(slots=3)
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    task = cluster.as_task(desired.allocation_id)
    ended = await cluster.create()
    other = next(w for w in await agent.wait_for_desired(2) if w.allocation_id != desired.allocation_id)
    await agent.run(other)
    await cluster.post(
        "/api/v1/checkpoints",
        {"uuid": KEPT, "taskId": desired.spec.task_id, "metadata": {"steps_completed": 1}, "resources": {"f": 1}},
        **task,
    )
    await cluster.post(
        "/api/v1/checkpoints",
        {"uuid": TO_DELETE, "taskId": desired.spec.task_id, "metadata": {"steps_completed": 1}, "resources": {"f": 1}},
        **task,
    )
    await cluster.post(
        "/api/v1/checkpoints",
        {"uuid": TO_REMOVE, "taskId": desired.spec.task_id, "metadata": {"steps_completed": 1}, "resources": {"f": 1}},
        **task,
    )
    async with cluster.master.database.write() as session:  # as if its own task were to remove it
        values = {"state": CheckpointState.DELETING, "removal_task_id": desired.spec.task_id}
        await session.execute(update(CheckpointRow).where(CheckpointRow.uuid == TO_REMOVE).values(**values))
    await agent.exit(other)
    await cluster.post(f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption")  # warm
    paused = await cluster.create(CONFIG, activate=False)
    archived = await cluster.create(CONFIG, activate=False)
    await cluster.post(f"/api/v1/experiments/{archived}/kill")
    from tests.support.waiting import eventually

    async def both_have_ended() -> bool:
        return [await cluster.state(ended), await cluster.state(archived)] == ["STATE_COMPLETED", "STATE_CANCELED"]

    await eventually(both_have_ended)
    fresh = (await cluster.create()), (await agent.wait_for_desired(2))
    waiting = next(w for w in fresh[1] if w.allocation_id != desired.allocation_id)
    from determined.states import ContainerState

    await agent.send_report(waiting, ContainerState.RUNNING)
    metrics = {
        "group": "training",
        "metrics": {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"a": 1}}},
    }
    output = {
        "container_id": desired.container_id,
        "allocation_id": desired.allocation_id,
        "task_id": desired.spec.task_id,
        "start": 0,
        "end": 2,
        "lines": [{"timestamp": 1.0, "log": "x"}],
    }
    login = {"username": "admin", "password": "Correct-Horse-7"}
    leaving = {"Authorization": f"Bearer {(await cluster.post('/api/v1/auth/login', login)).json()['token']}"}
    cluster.client.cookies.clear()
    joined = {"Authorization": f"Bearer {cluster.master.secrets.join_token}"}
    async with cluster.master.database.write() as session:
        many = [(await add_experiment(session)).id for _ in range(3)]
        await add_project(session)
    await update_columns(cluster.master.indexer)
    launch = {"config": {"entrypoint": ["ls"], "resources": {"slots": 3}}}
    waits = (await cluster.post("/api/v1/commands", launch)).json()["command"]["id"]
    shell = (await cluster.post("/api/v1/shells", {"config": {"resources": {"slots": 3}}})).json()["shell"]["id"]
    generic = (await cluster.post("/api/v1/commands", launch)).json()["command"]["id"]
    job = (await cluster.get("/api/v1/experiments/1"))["experiment"]["jobId"]

    async def is_decided() -> bool:
        queue = (await cluster.get("/detent/cluster/overview"))["queue"]
        return not any("waiting for the scheduler" in entry["waiting"] for entry in queue)

    await eventually(is_decided)  # the scheduler writes the reasons of the waits
    search, search_headers = await own_search(cluster, agent)
    m = "/api/v1/projects/{project_id}/experiments"
    a, w = "/api/v1/allocations/{allocation_id}", f"/api/v1/allocations/{waiting.allocation_id}"
    x, t = "/api/v1/experiments/{experiment_id}", "/api/v1/trials/{trial_id}"
    return {
        ("POST", "/api/v1/auth/login"): ("/api/v1/auth/login", login, {}),
        ("POST", "/detent/sign-in/links"): ("/detent/sign-in/links", {}, {}),
        ("POST", "/detent/sign-in"): ("/detent/sign-in", login, {}),
        ("POST", "/detent/sign-out"): ("/detent/sign-out", {}, leaving),
        ("POST", "/api/v1/users"): ("/api/v1/users", {"user": {"username": "new"}}, {}),
        ("PATCH", "/api/v1/users/{user_id}"): ("/api/v1/users/2", {"displayName": "D"}, {}),
        ("POST", "/api/v1/experiments"): ("/api/v1/experiments", {"config": CONFIG, "activate": True}, {}),
        ("POST", "/api/v1/commands"): ("/api/v1/commands", launch, {}),
        ("POST", "/api/v1/commands/{command_id}/set_priority"): (
            f"/api/v1/commands/{waits}/set_priority",
            {"priority": 1},
            {},
        ),
        ("POST", "/api/v1/commands/{command_id}/kill"): (f"/api/v1/commands/{waits}/kill", {}, {}),
        ("POST", "/api/v1/shells"): ("/api/v1/shells", {"config": {}}, {}),
        ("POST", "/api/v1/shells/{shell_id}/set_priority"): (
            f"/api/v1/shells/{shell}/set_priority",
            {"priority": 1},
            {},
        ),
        ("POST", "/api/v1/shells/{shell_id}/kill"): (f"/api/v1/shells/{shell}/kill", {}, {}),
        ("POST", "/api/v1/job-queues"): ("/api/v1/job-queues", {"updates": [{"jobId": job, "weight": 2}]}, {}),
        ("POST", "/detent/job-queues"): ("/detent/job-queues", {"updates": [{"jobId": job, "priority": 7}]}, {}),
        ("POST", "/api/v1/tasks/{task_id}/kill"): (f"/api/v1/tasks/{generic}/kill", {}, {}),
        ("POST", "/api/v1/experiments/continue"): ("/api/v1/experiments/continue", {"id": archived}, {}),
        ("POST", f"{m}/archive"): ("/api/v1/projects/1/experiments/archive", {"experimentIds": many[:1]}, {}),
        ("POST", f"{m}/move"): (
            "/api/v1/projects/0/experiments/move",
            {"experimentIds": many[1:2], "destinationProjectId": 2},
            {},
        ),
        ("DELETE", f"{m}/delete"): ("/api/v1/projects/1/experiments/delete", {"experimentIds": many[2:]}, {}),
        ("POST", "/detent/experiments/labels"): (
            "/detent/experiments/labels",
            {"experimentIds": [1], "expectedCount": 1, "add": ["x"]},
            {},
        ),
        ("POST", "/api/v1/users/setting"): ("/api/v1/users/setting", {"settings": [{"key": "k", "value": "v"}]}, {}),
        ("POST", f"{x}/activate"): (f"/api/v1/experiments/{paused}/activate", {}, {}),
        ("POST", f"{x}/pause"): ("/api/v1/experiments/1/pause", {}, {}),
        ("POST", f"{x}/cancel"): ("/api/v1/experiments/1/cancel", {}, {}),
        ("POST", f"{x}/kill"): ("/api/v1/experiments/1/kill", {}, {}),
        ("POST", f"{x}/archive"): (f"/api/v1/experiments/{ended}/archive", {}, {}),
        ("DELETE", x): (f"/api/v1/experiments/{ended}", None, {}),
        ("PATCH", x): ("/api/v1/experiments/1", {"name": "renamed"}, {}),
        ("PUT", f"{x}/labels/{{label}}"): ("/api/v1/experiments/1/labels/new", {}, {}),
        ("POST", f"{t}/kill"): ("/api/v1/trials/1/kill", {}, {}),
        ("POST", f"{t}/progress"): ("/api/v1/trials/1/progress", {"progress": 0.7}, task),
        ("POST", f"{t}/runner/metadata"): ("/api/v1/trials/1/runner/metadata", {"state": "s"}, task),
        ("POST", f"{t}/early_exit"): ("/api/v1/trials/1/early_exit", {"reason": "EXITED_REASON_INVALID_HP"}, task),
        ("POST", "/api/v1/runs/{trial_id}/metadata"): ("/api/v1/runs/1/metadata", {"metadata": {"a": 1}}, task),
        ("POST", "/api/v1/checkpoints"): (
            "/api/v1/checkpoints",
            {"uuid": checkpoint_uuid(3), "taskId": desired.spec.task_id, "metadata": {"steps_completed": 2}},
            task,
        ),
        ("DELETE", "/api/v1/checkpoints"): ("/api/v1/checkpoints", {"checkpointUuids": [TO_DELETE]}, {}),
        ("PATCH", "/api/v1/checkpoints"): (
            "/api/v1/checkpoints",
            {"checkpoints": [{"uuid": KEPT, "resources": {"resources": {}}}]},
            {},
        ),
        ("POST", "/detent/checkpoints/removed"): (
            "/detent/checkpoints/removed",
            {"removed": [TO_REMOVE], "failed": {}},
            task,
        ),
        ("POST", "/detent/experiments/{experiment_id}/search-task/steps"): (
            f"/detent/experiments/{search}/search-task/steps",
            {"cursor": -1, "to": 0, "actions": [], "snapshot": {"a": 1}},
            search_headers,
        ),
        ("POST", "/detent/experiments/{experiment_id}/search-task/failures"): (
            f"/detent/experiments/{search}/search-task/failures",
            {"reason": "KeyError: 'x'"},
            search_headers,
        ),
        ("POST", f"{a}/ready"): (f"{w}/ready", {}, {}),
        ("POST", f"{a}/signals/ack_preemption"): (f"{w}/signals/ack_preemption", {}, {}),
        ("POST", "/api/v1/agents/{agent_id}/disable"): ("/api/v1/agents/one/disable", {"drain": True}, {}),
        ("POST", "/api/v1/agents/{agent_id}/slots/{slot_id}/disable"): (
            "/api/v1/agents/one/slots/2/disable",
            {"drain": True},
            {},
        ),
        ("POST", "/detent/drain"): ("/detent/drain", {}, {}),
        ("POST", "/api/v1/trials/{trial_id}/metrics"): ("/api/v1/trials/1/metrics", metrics, task),
        ("POST", "/detent/trials/{trial_id}/reports"): (
            "/detent/trials/1/reports",
            {"reports": [metrics | {"group": "extra"}]},
            task,
        ),
        ("POST", "/api/v1/task/logs"): (
            "/api/v1/task/logs",
            {"logs": [{"taskId": desired.spec.task_id, "log": "x"}]},
            task,
        ),
        ("POST", "/detent/agents/{agent_id}/output"): ("/detent/agents/one/output", output, joined),
        ("POST", "/api/v1/auth/logout"): ("/api/v1/auth/logout", {}, {}),
    }


UNDOING = {  # each has the code path of its opposite, which is tried above
    ("POST", "/api/v1/experiments/{experiment_id}/unarchive"),
    ("DELETE", "/api/v1/experiments/{experiment_id}/labels/{label}"),
    ("POST", "/api/v1/agents/{agent_id}/enable"),
    ("POST", "/api/v1/agents/{agent_id}/slots/{slot_id}/enable"),
    ("POST", "/api/v1/users/setting/reset"),
    *(
        ("POST", f"/api/v1/projects/{{project_id}}/experiments/{verb}")
        for verb in ("activate", "pause", "cancel", "kill", "unarchive")
    ),
}


def served(cluster: Cluster) -> set[tuple[str, str]]:
    routes = {(m.upper(), path) for path, item in cluster.app.openapi()["paths"].items() for m in item}
    for route in cluster.app.routes:
        if type(route) is Route:
            routes |= {(method, route.path) for method in route.methods or ()}
    return {(method, path.replace(":row_id}", "}")) for method, path in routes}


def write_routes(cluster: Cluster) -> set[tuple[str, str]]:
    changing = {(m, p) for m, p in served(cluster) if m in ("POST", "PUT", "PATCH", "DELETE")}
    return {(m, p) for m, p in changing if p not in READ_ONLY_POSTS}


async def test_every_write_route_is_tried(cluster: Cluster):
    tried = set(await requests(cluster))
    assert write_routes(cluster) - UNDOING <= tried


async def test_a_failing_commit_is_a_5xx_and_changes_nothing(cluster: Cluster):
    wrong = []
    for (method, route), (path, body, headers) in (await requests(cluster)).items():
        with failing_commits(cluster):
            before = dump(cluster)
            answer = await cluster.client.request(method, path, json=body, headers=headers)
            after = dump(cluster)
        if answer.status_code < 500 or before != after:
            wrong.append((method, route, answer.status_code, answer.text[:200], before == after))
    assert wrong == []


async def test_the_same_requests_do_change_something(cluster: Cluster):
    """Otherwise the test above could not fail."""
    unchanged = []
    skip = {("POST", "/detent/drain"), ("POST", "/api/v1/experiments/{experiment_id}/cancel")}
    for (method, route), (path, body, headers) in (await requests(cluster)).items():
        before = dump(cluster)
        answer = await cluster.client.request(method, path, json=body, headers=headers)
        if (method, route) not in skip and (answer.status_code != 200 or dump(cluster) == before):
            unchanged.append((method, route, answer.status_code, answer.text[:200]))
    allowed = {("POST", "/api/v1/experiments/{experiment_id}/kill"), ("POST", "/api/v1/trials/{trial_id}/kill")}
    assert {(m, r) for m, r, s, _ in unchanged if s != 401} <= allowed, unchanged


async def test_every_read_only_post_is_a_served_route(cluster: Cluster):
    assert {path for _, path in served(cluster)} >= set(READ_ONLY_POSTS)
