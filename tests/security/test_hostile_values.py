"""Values at the edges of their range: each is refused with 400 or 404, and later requests are answered."""

import json
import logging
from typing import Any

import pytest
from tests.support.cluster import CONFIG, PASSWORD, Cluster
from tests.support.seeded_cluster import FILE, seed_cluster

HUGE = 2**64
EDGES = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00Z"]


@pytest.mark.parametrize("parent", ["a", "²", HUGE, -1, 99, [1], {"a": 1}, 1.5, True])
async def test_an_invalid_parent_is_refused_and_lists_still_answer(cluster: Cluster, parent: Any):
    """The experiment has a context of its own, so the parent need not be read."""
    body = {"config": CONFIG, "parentId": parent, "modelDefinition": [FILE]}
    answer = await cluster.post("/api/v1/experiments", body)
    if parent is not True:
        assert answer.status_code in (400, 404), answer.text
    assert (await cluster.client.get("/api/v1/experiments")).status_code == 200
    assert (await cluster.post("/detent/experiments/search", {})).status_code == 200


@pytest.mark.parametrize("time", EDGES)
async def test_a_time_at_the_edge_of_the_range_is_refused_and_logs_still_answer(cluster: Cluster, time: str):
    seeded = await seed_cluster(cluster)
    task = cluster.as_task(seeded.allocation)
    line = {"taskId": seeded.task, "log": "strange", "timestamp": time}
    assert (await cluster.post("/api/v1/task/logs", {"logs": [line]}, **task)).status_code == 400
    report = {"trialRunId": 1, "stepsCompleted": 3, "reportTime": time, "metrics": {"avgMetrics": {"loss": 1.0}}}
    body = {"group": "training", "metrics": report}
    assert (await cluster.post("/api/v1/trials/1/metrics", body, **task)).status_code == 400
    for path in ("/api/v1/trials/1/logs", "/detent/trials/1/logs", "/api/v1/trials/1/workloads"):
        assert (await cluster.client.get(path)).status_code == 200, path


async def test_a_timestamp_of_an_agent_beyond_the_range_is_stored_as_the_bound(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    line = {"start": 0, "end": 8, "log": "strange", "timestamp": 1e300, "stdtype": "stdout"}
    batch = {
        "container_id": seeded.container,
        "allocation_id": seeded.allocation,
        "task_id": seeded.task,
        "start": 0,
        "end": 8,
        "lines": [line],
    }
    headers = {"Authorization": f"Bearer {cluster.master.secrets.join_token}"}
    answer = await cluster.post(f"/detent/agents/{seeded.agent}/output", batch, **headers)
    assert answer.status_code == 200, answer.text
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    assert answer.status_code == 200
    assert "9000-01-01" in answer.text


@pytest.mark.parametrize("slot", ["77", "²", "٣", str(HUGE), "-1", "1" * 5000])
async def test_an_unknown_slot_answers_404(cluster: Cluster, slot: str):
    await cluster.join()
    assert (await cluster.client.get(f"/api/v1/agents/one/slots/{slot}")).status_code == 404
    assert (await cluster.client.post(f"/api/v1/agents/one/slots/{slot}/disable", json={})).status_code == 404


async def test_a_second_user_of_the_same_name_is_a_conflict(cluster: Cluster):
    for name in ("determined", "Determined"):
        assert (await cluster.client.patch("/api/v1/users/1", json={"username": name})).status_code == 409
        assert (await cluster.post("/api/v1/users", {"user": {"username": name}})).status_code == 409
    assert (await cluster.client.patch("/api/v1/users/2", json={"username": "DETERMINED"})).status_code == 200
    login = await cluster.post("/api/v1/auth/login", {"username": "determined", "password": PASSWORD})
    assert login.status_code == 200


async def test_a_lone_surrogate_is_refused_and_stored_nowhere(cluster: Cluster):
    await seed_cluster(cluster)
    metadata = '{"metadata": {"a\\ud800": ["\\udfff"]}}'
    answer = await cluster.client.post("/api/v1/runs/1/metadata", content=metadata)
    assert answer.status_code == 400
    assert "surrogate" in answer.json()["error"]["error"]
    assert (await cluster.client.patch("/api/v1/experiments/1", content='{"notes": "\\ud800"}')).status_code == 400
    body = json.dumps({"config": CONFIG + "description: \ud800"})
    assert (await cluster.client.post("/api/v1/experiments", content=body)).status_code == 400
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        answer = await cluster.client.post("/api/v1/runs/1/metadata", content=metadata.encode(encoding))
        assert answer.status_code == 400, encoding
        assert "surrogate" in answer.json()["error"]["error"]
    pair = '{"notes": "\\ud83d\\ude42 \\\\ud800"}'
    answer = await cluster.client.patch("/api/v1/experiments/1", content=pair)
    assert answer.json()["experiment"]["notes"] == "🙂 \\ud800"


@pytest.mark.parametrize("number", [HUGE, -HUGE, "٣", "²", "1.5", "1e3"])
async def test_a_number_that_is_no_id_is_refused(cluster: Cluster, number: Any):
    for path in (f"/api/v1/trials/{number}", f"/api/v1/experiments/{number}", f"/detent/logs/lines/{number}"):
        assert (await cluster.client.get(path)).status_code in (400, 404), path
    for query in (f"offset={number}", f"limit={number}", f"projectId={number}", f"userIds={number}"):
        assert (await cluster.client.get(f"/api/v1/experiments?{query}")).status_code == 400, query
    metrics = await cluster.client.post(f"/api/v1/trials/{number}/metrics", json={})
    assert metrics.status_code in (400, 404)


async def test_a_refusal_is_logged_without_a_traceback(cluster: Cluster, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        assert (await cluster.client.get(f"/api/v1/experiments?offset={HUGE}")).status_code == 400
        assert (await cluster.client.get("/api/v1/agents/one/slots/77")).status_code == 404
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("path", ["/api/v1/trials/1/metrics", "/detent/trials/1/reports", "/api/v1/task/logs"])
@pytest.mark.parametrize(
    "body", [b'{"group":"\xed\xa0\x80"}', b'{"logs":[{"taskId":"x","log":"\xff\xfe"}]}'], ids=["surrogate", "no UTF-8"]
)
async def test_bytes_that_are_no_text_are_refused_on_hot_routes(cluster: Cluster, path: str, body: bytes):
    agent = await cluster.join()
    await cluster.create()
    task = cluster.as_task((await agent.wait_for_desired())[0].allocation_id)
    answer = await cluster.client.post(path, content=body, headers={**task, "Content-Type": "application/json"})
    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/api/v1/auth/login", "/detent/sign-in"])
async def test_a_surrogate_in_a_name_is_refused_at_sign_in(cluster: Cluster, path: str):
    headers = {"Content-Type": "application/json"}
    answer = await cluster.client.post(path, content=b'{"username":"\xed\xa0\x80"}', headers=headers)
    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/api/v1/trials/{}/metrics", "/detent/trials/{}/reports", "/api/v1/trials/{}"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_an_id_of_thousands_of_digits_is_refused(cluster: Cluster, path: str, method: str):
    answer = await cluster.client.request(method, path.format("9" * 5000))
    assert 400 <= answer.status_code < 500


async def test_an_integer_beyond_the_range_of_floats_is_stored_and_later_requests_are_answered(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    task = cluster.as_task(seeded.allocation)
    huge = f"-1{'0' * 400}"
    metadata = await cluster.client.post("/api/v1/runs/1/metadata", content=f'{{"metadata": {{"n": {huge}}}}}')
    assert metadata.status_code == 200, metadata.text
    assert huge in (await cluster.client.get("/api/v1/runs/1/metadata")).text
    for step, value in ((3, huge), (4, "1"), (5, huge), (6, "2")):
        report = f'{{"trialRunId": 1, "stepsCompleted": {step}, "metrics": {{"avgMetrics": {{"loss": {value}}}}}}}'
        body = f'{{"group": "validation", "metrics": {report}}}'
        answer = await cluster.client.post("/api/v1/trials/1/metrics", content=body, headers=task)
        assert answer.status_code == 200, answer.text
    for path in ("/api/v1/trials/1/workloads", "/api/v1/experiments/1", "/detent/trials/1/metric-names"):
        answer = await cluster.client.get(path)
        assert answer.status_code == 200, answer.text
    summary = (await cluster.get("/api/v1/trials/1"))["trial"]["summaryMetrics"]["validation_metrics"]["loss"]
    assert (summary["count"], summary["min"], summary["max"], summary["last"]) == (3, 0.5, 2, 2)
    wanted = {"trialIds": [1], "metrics": [{"group": "validation", "name": "loss"}], "x": "batches"}
    series = await cluster.post("/detent/series", wanted)
    assert series.status_code == 200, series.text
    assert series.json()["series"][0]["values"][-4:] == ["-Infinity", 1, "-Infinity", 2]
    assert (await cluster.post("/detent/experiments/search", {})).status_code == 200
