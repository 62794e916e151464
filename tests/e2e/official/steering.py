"""Pauses, resumes and kills one trial, of any kind and any user."""

from pathlib import Path
from typing import Any

from tests.e2e.official import configs
from tests.support.official_cluster import OfficialCluster, until

SDK = configs.CONTEXTS.parent / "sdk"
ENOUGH = 3


def pause_resume_kill(cluster: OfficialCluster, config: dict[str, Any], context: Path) -> tuple[int, int, str]:
    """Returns the experiment, the step at which it was paused, and its log after the end."""
    experiment = cluster.create(config, context)
    cluster.gets_past(experiment, ENOUGH)
    cluster.det("experiment", "pause", experiment)
    until(lambda: not cluster.held(experiment))
    assert cluster.experiment(experiment)["state"] == "STATE_PAUSED"
    assert "FREE" in cluster.det("slot", "list")
    paused_at = cluster.steps(experiment)
    newest = cluster.api.get(f"/api/v1/experiments/{experiment}/checkpoints")["checkpoints"]
    assert max(checkpoint["metadata"]["steps_completed"] for checkpoint in newest) == paused_at
    cluster.det("experiment", "activate", experiment)
    cluster.gets_past(experiment, paused_at + ENOUGH)
    cluster.det("experiment", "kill", experiment)
    cluster.reaches(experiment, "CANCELED")
    until(lambda: not cluster.held(experiment))
    return experiment, paused_at, cluster.logs(experiment)


def as_read_by_the_sdk(cluster: OfficialCluster, experiment: int) -> list[tuple[int, dict[str, Any]]]:
    """Returns the training reports by step. Fails unless each step is reported once."""
    reports = cluster.python(SDK / "metrics.py", cluster.trial(experiment)["id"])["training"]
    assert [steps for steps, _metrics in reports] == list(range(1, len(reports) + 1))
    return [(steps, metrics) for steps, metrics in reports]
