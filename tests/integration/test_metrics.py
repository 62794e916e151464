"""Metric reports: repeated, merged, refused and replaced ones, and values that are not finite."""

import asyncio
import json
import sqlite3
from typing import Any

import pytest
from tests.integration.test_failing_commits import failing_commits
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint
from tests.support.cluster import Cluster, FakeAgent
from tests.support.seeded_cluster import seed_cluster


async def run_trial(cluster: Cluster) -> tuple[FakeAgent, Any, dict[str, str]]:
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    return agent, desired, cluster.as_task(desired.allocation_id)


async def report(cluster: Cluster, headers, steps, metrics, *, run=1, group="training", trial=1, **more):
    body = {
        "group": group,
        "metrics": {
            "trialId": trial,
            "trialRunId": run,
            "stepsCompleted": steps,
            "metrics": {"avgMetrics": metrics},
            **more,
        },
    }
    return await cluster.post(f"/api/v1/trials/{trial}/metrics", body, **headers)


async def stored(cluster: Cluster, group="training") -> list[tuple[int, int, dict]]:
    text = (
        await cluster.client.get("/api/v1/trials/metrics/trial_metrics", params={"trialIds": 1, "group": group})
    ).text
    reports = []
    for line in text.splitlines():
        for row in json.loads(line)["result"]["metrics"]:
            metrics = row["metrics"].get("avg_metrics") or row["metrics"].get("validation_metrics") or row["metrics"]
            reports.append((row["trialRunId"], row["totalBatches"], metrics))
    return sorted(reports, key=lambda row: (row[1], row[0]))


async def next_run(cluster: Cluster, agent: FakeAgent, desired, *, checkpoint: tuple[str, int] | None = None):
    """Lets the attempt fail; returns the next attempt and its headers."""
    headers = cluster.as_task(desired.allocation_id)
    if checkpoint:
        body = {"uuid": checkpoint[0], "taskId": desired.spec.task_id, "metadata": {"steps_completed": checkpoint[1]}}
        assert (await cluster.post("/api/v1/checkpoints", body, **headers)).status_code == 200
    await agent.exit(desired, code=1)
    again = (await agent.wait_for_desired())[0]
    await agent.run(again)
    return again, cluster.as_task(again.allocation_id)


async def test_the_same_report_twice_is_stored_once(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    for _ in range(2):
        assert (await report(cluster, task, 1, {"loss": 0.5})).status_code == 200
    assert await stored(cluster) == [(1, 1, {"loss": 0.5})]
    summary = (await cluster.get("/api/v1/trials/1"))["trial"]["summaryMetrics"]["avg_metrics"]["loss"]
    assert summary["count"] == 1


@pytest.mark.sqlite
async def test_a_report_waits_for_another_program_that_holds_the_database_and_nothing_else_does(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    assert (await report(cluster, task, 1, {"loss": 0.5})).status_code == 200
    other = sqlite3.connect(cluster.master.settings.data / "master.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(report(cluster, task, 2, {"loss": 0.25}))
    for _ in range(3):
        assert (await cluster.get("/api/v1/me"))["user"]["username"] == "admin"
    assert not waiting.done()
    other.execute("ROLLBACK")
    other.close()
    assert (await waiting).status_code == 200
    assert (await report(cluster, task, 3, {"loss": 0.125})).status_code == 200
    assert [steps for _, steps, _ in await stored(cluster)] == [1, 2, 3]


@pytest.mark.sqlite
async def test_a_report_whose_commit_fails_counts_nowhere_and_may_be_sent_again(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    assert (await report(cluster, task, 1, {"loss": 1.0})).status_code == 200
    with failing_commits(cluster):
        assert (await report(cluster, task, 2, {"loss": 3.0})).status_code >= 500
    assert await stored(cluster) == [(1, 1, {"loss": 1.0})]
    assert (await report(cluster, task, 2, {"loss": 5.0})).status_code == 200
    assert await stored(cluster) == [(1, 1, {"loss": 1.0}), (1, 2, {"loss": 5.0})]
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert trial["summaryMetrics"]["avg_metrics"]["loss"] == {
        "type": "number",
        "last": 5.0,
        "count": 2,
        "sum": 6.0,
        "mean": 3.0,
        "min": 1.0,
        "max": 5.0,
    }


async def test_a_report_of_a_reported_step_adds_keys_and_cannot_change_values(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    await report(cluster, task, 1, {"loss": 0.5})
    assert (await report(cluster, task, 1, {"accuracy": 1.0})).status_code == 200
    refused = await report(cluster, task, 1, {"loss": 0.6, "new": 1})
    assert refused.status_code == 400
    assert "loss" in refused.json()["error"]["error"]
    assert await stored(cluster) == [(1, 1, {"loss": 0.5, "accuracy": 1.0})]


async def test_nan_and_infinity_are_stored_and_returned_unchanged(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    odd = {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1.5}
    assert (await report(cluster, task, 1, odd)).status_code == 200
    assert (await report(cluster, task, 1, odd)).status_code == 200
    assert await stored(cluster) == [(1, 1, odd)]


async def test_a_newer_run_hides_earlier_steps_after_its_checkpoint_in_every_group(cluster: Cluster):
    agent, desired, task = await run_trial(cluster)
    for step in range(1, 6):
        await report(cluster, task, step, {"loss": float(step)})
    await report(cluster, task, 5, {"loss": 5.0}, group="validation")
    await report(cluster, task, 4, {"x": 1.0}, group="extra")
    again, newer = await next_run(cluster, agent, desired, checkpoint=(checkpoint_uuid(1), 3))
    assert again.spec.environment["DET_STEPS_COMPLETED"] == "3"
    assert (await report(cluster, newer, 4, {"loss": 40.0}, run=2)).status_code == 200
    assert await stored(cluster) == [
        (1, 1, {"loss": 1.0}),
        (1, 2, {"loss": 2.0}),
        (1, 3, {"loss": 3.0}),
        (2, 4, {"loss": 40.0}),
    ]
    assert await stored(cluster, "validation") == []
    assert await stored(cluster, "extra") == []
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert trial["totalBatchesProcessed"] == 4
    assert trial["summaryMetrics"]["avg_metrics"]["loss"]["count"] == 4
    assert trial["latestValidation"] is None


async def test_reports_of_one_request_all_count_when_a_newer_run_begins_again(cluster: Cluster):
    agent, desired, task = await run_trial(cluster)
    for step in range(1, 4):
        await report(cluster, task, step, {"loss": 100.0})
    _, newer = await next_run(cluster, agent, desired, checkpoint=(checkpoint_uuid(1), 3))
    metrics = [
        {
            "group": "training",
            "metrics": {"trialRunId": 2, "stepsCompleted": step, "metrics": {"avgMetrics": {"loss": step}}},
        }
        for step in (1, 2, 3)
    ]
    answer = await cluster.post("/detent/trials/1/reports", {"reports": metrics}, **newer)
    assert answer.status_code == 200, answer.text
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    loss = trial["summaryMetrics"]["avg_metrics"]["loss"]
    assert [loss[part] for part in ("count", "min", "max", "mean")] == [3, 1, 3, 2]


async def test_the_step_of_the_checkpoint_itself_is_listed_once(cluster: Cluster):
    agent, desired, task = await run_trial(cluster)
    await report(cluster, task, 3, {"loss": 3.0}, group="validation")
    _, newer = await next_run(cluster, agent, desired, checkpoint=(checkpoint_uuid(1), 3))
    assert (await report(cluster, newer, 3, {"loss": 30.0}, run=2, group="validation")).status_code == 200
    assert await stored(cluster, "validation") == [(2, 3, {"loss": 30.0})]


async def test_a_stale_run_is_refused(cluster: Cluster):
    agent, desired, _ = await run_trial(cluster)
    _, newer = await next_run(cluster, agent, desired)
    refused = await report(cluster, newer, 1, {"loss": 1.0}, run=1)
    assert refused.status_code == 400
    assert "stale" in refused.json()["error"]["error"]
    assert (await report(cluster, newer, 1, {"loss": 1.0}, run=3)).status_code == 400
    assert await stored(cluster) == []


async def test_the_token_of_an_ended_attempt_is_refused(cluster: Cluster):
    agent, desired, task = await run_trial(cluster)
    assert (await report(cluster, task, 1, {"loss": 1.0})).status_code == 200
    await next_run(cluster, agent, desired)
    late = await report(cluster, task, 2, {"loss": 1.0})
    assert late.status_code == 401
    assert "fenced" in late.json()["error"]["error"]


async def test_a_task_may_not_report_for_another_trial(cluster: Cluster):
    agent = await cluster.join(slots=2)
    await cluster.create()
    await cluster.create()
    containers = await agent.wait_for_desired(2)
    for desired in containers:
        await agent.run(desired)
    mine = next(w for w in containers if w.spec.environment["DET_TRIAL_ID"] == "1")
    refused = await report(cluster, cluster.as_task(mine.allocation_id), 1, {"loss": 1.0}, trial=2)
    assert refused.status_code == 403
    for signature in (b"0" * 64, b"\xe9" * 64):
        token = b"Bearer dta1.%s.%s" % (mine.allocation_id.encode(), signature)
        forged: dict[Any, Any] = {"Authorization": "", "Grpc-Metadata-x-allocation-token": token}
        assert (await report(cluster, forged, 1, {"loss": 1.0})).status_code == 401
    assert await stored(cluster) == []


async def test_profiler_groups_are_keyed_by_their_time(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    for at in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z"):
        answer = await report(cluster, task, None, {"cpu_util_simple": 1.0}, group="cpu", reportTime=at)
        assert answer.status_code == 200
    assert len(await stored(cluster, "cpu")) == 2


async def test_best_validation_follows_the_searcher_metric(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    for step, loss in ((1, 0.5), (2, 0.1), (3, 0.3)):
        await report(cluster, task, step, {"loss": loss}, group="validation")
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert trial["bestValidation"]["totalBatches"] == 2
    assert trial["latestValidation"]["totalBatches"] == 3
    assert trial["searcherMetricValue"] == 0.1
    best = await cluster.get("/api/v1/experiments/1/searcher/best_searcher_validation_metric")
    assert best["metric"] == 0.1


async def test_the_best_validation_of_an_archived_run_is_no_longer_shown(cluster: Cluster):
    agent, desired, task = await run_trial(cluster)
    await report(cluster, task, 2, {"loss": 0.5}, group="validation")
    await report(cluster, task, 5, {"loss": 0.1}, group="validation")
    _, newer = await next_run(cluster, agent, desired, checkpoint=(checkpoint_uuid(1), 3))
    assert (await report(cluster, newer, 4, {"loss": 9.0}, run=2)).status_code == 200
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert trial["bestValidation"]["totalBatches"] == 2
    assert trial["searcherMetricValue"] == 0.5
    best = await cluster.get("/api/v1/experiments/1/searcher/best_searcher_validation_metric")
    assert best["metric"] == 0.5
    assert (await cluster.get("/api/v1/experiments/1"))["experiment"]["bestTrialSearcherMetric"] == 0.5


async def test_a_searcher_metric_that_is_added_to_a_report_can_be_the_best(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    await report(cluster, task, 1, {"accuracy": 0.9}, group="validation")
    assert (await cluster.get("/api/v1/trials/1"))["trial"]["searcherMetricValue"] is None
    await report(cluster, task, 1, {"loss": 0.2}, group="validation")
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert (trial["bestValidation"]["totalBatches"], trial["searcherMetricValue"]) == (1, 0.2)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"group": "training"}',
        b'{"group": "a.b", "metrics": {"trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {}}}}',
        b'{"group": "t", "metrics": {"trialRunId": "x", "metrics": {}}}',
        b'{"group": "t", "metrics": {"stepsCompleted": 1, "metrics": {}}}',
        b'{"group": "validation", "metrics": {"trialRunId": 1, "metrics": {"avgMetrics": {"loss": 1}}}}',
        b'{"group": "t", "metrics": {"trialRunId": 1, "reportTime": "noon", "metrics": {}}}',
    ],
)
async def test_invalid_reports_are_answered_with_400_and_stored_nowhere(cluster: Cluster, body: bytes):
    _, _, task = await run_trial(cluster)
    answer = await cluster.client.post("/api/v1/trials/1/metrics", content=body, headers=task)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == 3


async def test_a_refused_report_does_not_fail_others_of_its_group(cluster: Cluster):
    import asyncio

    _, _, task = await run_trial(cluster)
    await report(cluster, task, 1, {"loss": 1.0})
    answers = await asyncio.gather(
        *(report(cluster, task, step, {"loss": 2.0}) for step in range(1, 6)),
        report(cluster, task, 9, {"loss": 1.0}, run=7),
    )
    assert sorted(a.status_code for a in answers) == [200, 200, 200, 200, 400, 400]
    assert [row[1] for row in await stored(cluster)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("group", ["training", "inference"])
async def test_metrics_of_every_group_have_the_keys_that_the_official_sdk_reads(cluster: Cluster, group: str):
    _, _, task = await run_trial(cluster)
    assert (await report(cluster, task, 3, {"loss": 0.5}, group=group)).status_code == 200
    path = "/api/v1/trials/metrics/trial_metrics"
    text = (await cluster.client.get(path, params={"trialIds": 1, "group": group})).text
    (row,) = json.loads(text.splitlines()[0])["result"]["metrics"]
    assert row["metrics"] == {"avg_metrics": {"loss": 0.5}, "batch_metrics": None}


async def test_workloads_have_only_the_key_of_their_kind_and_leave_out_custom_groups(cluster: Cluster) -> None:
    seeded = await seed_cluster(cluster)
    task = cluster.as_task(seeded.allocation)
    report = {"trialRunId": 1, "stepsCompleted": 2, "metrics": {"avgMetrics": {"records": 7}}}
    answer = await cluster.post("/api/v1/trials/1/metrics", {"group": "speed", "metrics": report}, **task)
    assert answer.status_code == 200, answer.text
    workloads = (await cluster.get("/api/v1/trials/1/workloads"))["workloads"]
    assert [list(each) for each in workloads] == [["validation"], ["checkpoint"], ["training"]]
    assert "records" not in str(workloads)
    of_group = (await cluster.get("/api/v1/trials/1/workloads", group="speed"))["workloads"]
    assert [each["training"]["metrics"]["avgMetrics"] for each in of_group if "training" in each] == [{"records": 7}]


@pytest.mark.parametrize(
    ("value", "shown", "last"),
    [(10**400, "Infinity", "Infinity"), (-(10**400), "-Infinity", "-Infinity"), (True, None, True), (7, 7.0, 7.0)],
    ids=["huge", "hugely negative", "boolean", "number"],
)
async def test_any_value_of_the_searcher_metric_can_be_read(cluster: Cluster, value: Any, shown: Any, last: Any):
    _, desired, headers = await run_trial(cluster)
    assert (await report(cluster, headers, 2, {"loss": value}, group="validation")).status_code == 200
    await report_checkpoint(cluster, desired.allocation_id, checkpoint_uuid(1), steps=2)
    checkpoint = (await cluster.get(f"/api/v1/checkpoints/{checkpoint_uuid(1)}"))["checkpoint"]
    found = checkpoint["training"]["searcherMetric"]
    assert (found, type(found)) == (shown, type(shown))
    (summary,) = (await cluster.post("/detent/trials/summaries", {"trialIds": [1]})).json()["trials"]
    found = summary["metrics"][0]["last"]
    assert (found, type(found)) == (last, type(last))
