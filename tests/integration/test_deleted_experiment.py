"""A deleted experiment: every route of it, its trials, tasks and attempts answers 404 at once."""

from pathlib import Path
from typing import Any

from tests.support.callers import Callers, callers
from tests.support.cluster import Cluster
from tests.support.seeded_cluster import seed_cluster
from tests.support.waiting import eventually

from determined.states import ExperimentState
from determined_master.experiments import repository

ROUTES = Path(__file__).parents[1] / "security" / "routes.txt"
OF_THE_EXPERIMENT = ("{experiment_id}", "{trial_id", "{task_id}", "{allocation_id}", "{uuid}", "{line_id}")
NAMED_BELOW = ("/search-task", "/detent/experiments/{experiment_id}/file", "/detent/tasks/{task_id}/enter")
"""Routes that are skipped: only the task of a search may call the first; the second needs a query and is called below;
the third answers browsers that are signed in by a cookie."""


def bodies(seeded: Any) -> dict[str, Any]:
    """Returns valid bodies by ``METHOD path``; an invalid body is answered with 400 for every path."""
    report = {"trialId": seeded.trial, "trialRunId": 1, "stepsCompleted": 9, "metrics": {"avgMetrics": {"loss": 9}}}
    return {
        "POST /api/v1/experiments/{experiment_id}/file": {"path": "run.py"},
        "PATCH /api/v1/experiments/{experiment_id}": {"notes": "n"},
        "POST /detent/tasks/{task_id}/streams": {"argv": ["true"]},
        "POST /detent/tasks/{task_id}/open": {"port": 8888},
        "POST /api/v1/runs/{trial_id}/metadata": {"metadata": {}},
        "POST /api/v1/trials/{trial_id}/early_exit": {"reason": "EXITED_REASON_INVALID_HP"},
        "POST /api/v1/trials/{trial_id}/progress": {"progress": 0.5},
        "POST /api/v1/trials/{trial_id}/metrics": {"group": "training", "metrics": report},
        "POST /detent/trials/{trial_id}/reports": {"reports": [{"group": "training", "metrics": report}]},
    }


def named_in_the_query(everyone: Callers) -> list[tuple[str, str, dict[str, Any], Any]]:
    """Returns requests that name experiments, trials and tasks in their query or body."""
    seeded = everyone.seeded
    trial = {"trialIds": seeded.trial}
    return [
        ("GET", "/api/v1/trials/metrics/training_metrics", trial, None),
        ("GET", "/api/v1/trials/metrics/validation_metrics", trial, None),
        ("GET", "/api/v1/trials/metrics/trial_metrics", trial, None),
        ("GET", "/api/v1/trials/time-series", {**trial, "metricIds": "training.loss"}, None),
        ("GET", "/api/v1/experiments/metrics-stream/metric-names", {"ids": seeded.experiment}, None),
        ("GET", "/detent/checkpoints", {"experimentId": seeded.experiment}, None),
        ("GET", f"/detent/experiments/{seeded.experiment}/file", {"path": "run.py"}, None),
        ("POST", "/api/v1/job-queues", {}, {"updates": [{"jobId": seeded.job, "weight": 2}]}),
        ("POST", "/api/v1/runs/start", {}, {"runId": seeded.trial}),
        ("POST", "/api/v1/experiments/continue", {}, {"id": seeded.experiment}),
        ("POST", "/api/v1/task/logs", {}, {"logs": [{"taskId": seeded.task, "log": "late"}]}),
        ("DELETE", "/api/v1/checkpoints", {}, {"checkpointUuids": [seeded.checkpoint]}),
    ]


async def delete_experiment(cluster: Cluster) -> Callers:
    everyone = await callers(cluster)
    cluster.client.headers["Authorization"] = everyone.headers["admin"]["Authorization"]
    await everyone.seeded.end()
    path = f"/api/v1/experiments/{everyone.seeded.experiment}"

    async def has_ended() -> bool:
        return bool((await cluster.get(path))["experiment"]["state"] == "STATE_COMPLETED")

    await eventually(has_ended)
    assert (await cluster.client.put(f"{path}/labels/only-here")).status_code == 200
    assert (await cluster.client.delete(path)).status_code == 200

    async def is_gone() -> bool:
        return (await cluster.client.get(path)).status_code == 404

    await eventually(is_gone)
    return everyone


async def test_every_route_below_a_deleted_experiment_answers_404(cluster: Cluster):
    everyone = await delete_experiment(cluster)
    sent = bodies(everyone.seeded)
    failures: list[str] = []
    for line in ROUTES.read_text().splitlines():
        _rule, method, template = line.split()
        if not any(name in template for name in OF_THE_EXPERIMENT) or any(name in template for name in NAMED_BELOW):
            continue
        template = template.replace(":row_id", "")
        body = sent.get(f"{method} {template}", None if method == "GET" else {})
        answer = await cluster.client.request(method, everyone.path(template), json=body)
        if answer.status_code != 404:
            failures.append(f"{method} {template}: {answer.status_code} {answer.text[:120]}")
    for method, path, query, body in named_in_the_query(everyone):
        answer = await cluster.client.request(method, path, params=query, json=body)
        if answer.status_code != 404:
            failures.append(f"{method} {path} {query}: {answer.status_code} {answer.text[:120]}")
    assert failures == [], "\n".join(failures)


async def test_ids_and_labels_of_a_deleted_experiment_are_not_offered(cluster: Cluster):
    everyone = await delete_experiment(cluster)
    for kind, name in (("jobs", everyone.seeded.job), ("tasks", everyone.seeded.task)):
        assert (await cluster.get(f"/detent/ids/{kind}", prefix=name))["ids"] == [], kind
    assert (await cluster.get("/api/v1/experiment/labels"))["labels"] == []
    command = everyone.seeded.command
    assert (await cluster.get("/detent/ids/tasks", prefix=command))["ids"] == [command]


async def test_trials_are_shown_until_the_experiment_is_gone(cluster: Cluster):
    """As in Determined, the experiment and its trials remain while files are removed, and if that fails."""
    seeded = await seed_cluster(cluster)
    await seeded.end()
    path = f"/api/v1/experiments/{seeded.experiment}"

    async def has_ended() -> bool:
        return bool((await cluster.get(path))["experiment"]["state"] == "STATE_COMPLETED")

    await eventually(has_ended)
    async with cluster.master.database.write() as session:
        row = await repository.get(session, seeded.experiment)
        await repository.move(session, cluster.master.clock, row, ExperimentState.DELETING)
        await repository.move(session, cluster.master.clock, row, ExperimentState.DELETE_FAILED)
    assert (await cluster.get(f"/api/v1/trials/{seeded.trial}"))["trial"]["id"] == seeded.trial
    assert (await cluster.get(f"/api/v1/trials/{seeded.trial}/workloads"))["workloads"]
