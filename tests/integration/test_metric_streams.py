"""Metric series and metric streams of the Determined API. A stream repeats an answer only after a change."""

import asyncio
import json
from itertools import pairwise
from typing import Any

from tests.support.cluster import Cluster
from tests.support.waiting import eventually

from determined_master import notifications


async def run_trial(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create("name: t\nentrypoint: x\nsearcher: {name: single, metric: loss}\nhyperparameters: {lr: 0.5}\n")
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    return agent, desired


async def report(cluster: Cluster, desired, steps: int, metrics: Any, group="validation"):
    fields = {"trialId": 1, "trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": metrics}}
    headers = cluster.as_task(desired.allocation_id)
    answer = await cluster.post("/api/v1/trials/1/metrics", {"group": group, "metrics": fields}, **headers)
    assert answer.status_code == 200, answer.text


async def stream(cluster: Cluster, path: str, **query: Any) -> list[Any]:
    answer = await cluster.client.get(f"/api/v1/experiments/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["result"] for line in answer.text.splitlines()]


async def test_trials_are_compared_with_all_metrics_of_a_time_in_one_point(cluster: Cluster):
    _, desired = await run_trial(cluster)
    for steps in (1, 2, 3):
        await report(cluster, desired, steps, {"loss": steps / 2, "acc": "NaN", "epochs": steps})
    query = {"trialIds": 1, "metricNames": ["loss"], "metricIds": ["validation.acc"], "group": "validation"}
    (compared,) = (await cluster.get("/api/v1/trials/time-series", **query, startBatches=2))["trials"]
    assert compared["trial"]["id"] == 1
    (metrics,) = compared["metrics"]
    assert (metrics["group"], metrics["type"]) == ("validation", "METRIC_TYPE_VALIDATION")
    assert [(p["batches"], p["epoch"], p["values"]) for p in metrics["data"]] == [
        (2, 2.0, {"loss": 1.0, "acc": "NaN"}),
        (3, 3.0, {"loss": 1.5, "acc": "NaN"}),
    ]
    assert (await cluster.get("/api/v1/trials/time-series"))["trials"] == []
    refused = await cluster.client.get("/api/v1/trials/time-series", params={"trialIds": 1, "metricNames": "loss"})
    assert refused.status_code == 400
    assert (await cluster.client.get("/api/v1/trials/time-series", params={"trialIds": 9})).status_code == 404


async def test_a_metric_stream_without_a_period_is_answered_once(cluster: Cluster):
    _, desired = await run_trial(cluster)
    for steps in (2, 4, 9):
        await report(cluster, desired, steps, {"loss": float(steps)})
    (names,) = await stream(cluster, "metrics-stream/metric-names", ids=1)
    assert names == {
        "metricNames": [{"group": "validation", "name": "loss"}],
        "searcherMetrics": ["loss"],
        "trainingMetrics": [],
        "validationMetrics": ["loss"],
    }
    query = {"metricName": "loss", "metricType": "METRIC_TYPE_VALIDATION"}
    assert await stream(cluster, "1/metrics-stream/batches", **query) == [{"batches": [2, 4, 9]}]
    (sample,) = await stream(cluster, "1/metrics-stream/trials-sample", **query, endBatches=4)
    assert (sample["promotedTrials"], sample["demotedTrials"]) == ([1], [])
    assert [p["values"]["loss"] for p in sample["trials"][0]["data"]] == [2.0, 4.0]
    assert sample["trials"][0]["hparams"] == {"lr": 0.5}
    (snapshot,) = await stream(cluster, "1/metrics-stream/trials-snapshot", **query, batchesProcessed=8)
    assert snapshot["trials"] == [{"trialId": 1, "hparams": {"lr": 0.5}, "metric": 9.0, "batchesProcessed": 9}]
    assert (await stream(cluster, "1/metrics-stream/trials-snapshot", **query, batchesProcessed=50))[0]["trials"] == []
    assert (await cluster.client.get("/api/v1/experiments/9/metrics-stream/batches", params=query)).status_code == 404
    assert (await cluster.client.get("/api/v1/experiments/1/metrics-stream/batches")).status_code == 400


async def test_a_metric_stream_follows_an_experiment_and_ends_with_it(cluster: Cluster):
    agent, desired = await run_trial(cluster)
    await report(cluster, desired, 1, {"loss": 1.0})
    query = {"metricName": "loss", "group": "validation", "periodSeconds": 1}
    following = asyncio.ensure_future(stream(cluster, "1/metrics-stream/batches", **query))
    await wait_for_subscriber(cluster)
    await report(cluster, desired, 2, {"loss": 2.0})
    await agent.exit(desired)
    parts = await asyncio.wait_for(following, 20)
    assert parts[-1] == {"batches": [1, 2]}
    assert all(a != b for a, b in pairwise(parts))


async def wait_for_subscriber(cluster: Cluster) -> None:
    async def is_subscribed() -> bool:
        return cluster.master.notifications.has_subscribers(notifications.SHUTDOWN)

    await eventually(is_subscribed)
