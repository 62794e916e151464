"""Recorded requests of the official client, and of the official library inside trials, are sent again."""

import json
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.cluster import PASSWORD, Cluster
from tests.support.seeded_cluster import SeededObjects, seed_cluster
from tests.support.waiting import eventually
from tests.support.wire_shape import bodies, faults

from determined_master.auth.passwords import client_hash

RECORDED = Path(__file__).resolve().parent / "recorded"
ENDING = ["PauseExperiment", "ActivateExperiment", "CancelExperiment", "KillTrial", "KillExperiment"]
AFTER_THE_END = ["ArchiveExperiment", "UnarchiveExperiment", "DeleteCheckpoints", "DeleteExperiment", "Logout"]
Sample = dict[str, Any]


async def test_recorded_calls_of_the_official_command_line_and_sdk_are_answered(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    samples = load("cli.json")
    following = [s for s in samples if ["follow", "true"] in s["query"]]
    wrong = []
    for sample in pick(samples, lambda s: s["operation"] not in ENDING + AFTER_THE_END and s not in following):
        wrong += await replay(cluster, seeded, sample)
    for sample in pick(samples, lambda s: s["operation"] in ENDING):
        wrong += await replay(cluster, seeded, sample)
    await seeded.end()

    async def over() -> bool:
        return await cluster.state(seeded.experiment) == "STATE_CANCELED"

    await eventually(over)
    for sample in [*following, *pick(samples, lambda s: s["operation"] in AFTER_THE_END)]:
        wrong += await replay(cluster, seeded, sample)
    assert wrong == []


async def test_recorded_calls_of_the_official_library_are_answered(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    samples = load("task.json")
    headers = cluster.as_task(seeded.allocation)
    wrong = []
    for sample in pick(samples, lambda s: "reemption" not in s["operation"]):
        wrong += await replay(cluster, seeded, sample, headers)
    await cluster.post(f"/api/v1/experiments/{seeded.experiment}/pause")
    for sample in pick(samples, lambda s: "reemption" in s["operation"]):
        wrong += await replay(cluster, seeded, sample, headers)
    assert wrong == []


def load(name: str) -> list[Sample]:
    samples: list[Sample] = json.loads((RECORDED / name).read_text())
    assert samples
    return samples


def pick(samples: Iterable[Sample], wanted: Callable[[Sample], bool]) -> list[Sample]:
    return [sample for sample in samples if wanted(sample)]


async def replay(
    cluster: Cluster, seeded: SeededObjects, sample: Sample, headers: dict[str, str] | None = None
) -> list[str]:
    """Sends a recorded request with the ids of this cluster; returns the faults of the answer."""
    operation = sample["operation"]
    names: dict[str, Any] = {
        "experiment": seeded.experiment,
        "trial": seeded.trial,
        "run": 1,
        "task": seeded.task,
        "allocation": seeded.allocation,
        "container": seeded.container,
        "checkpoint": str(uuid.uuid4()) if operation == "ReportCheckpoint" else seeded.checkpoint,
        "agent": seeded.agent,
        "user": 2,
        "username": {"PostUser": "newcomer", "PatchUser": "renamed"}.get(operation, "admin"),
        "password": client_hash(PASSWORD),
        "uuid": str(uuid.uuid4()),
    }
    query = urlencode([(key, fill_in(value, names)) for key, value in sample["query"]])
    body = b"" if sample["body"] is None else json.dumps(fill_in(sample["body"], names)).encode()
    kind = {"content-type": sample["content_type"]} if sample["content_type"] else {}
    answer = await cluster.client.request(
        sample["method"],
        fill_in(sample["path"], names) + (f"?{query}" if query else ""),
        content=body,
        headers={**kind, **(headers or {})},
    )
    if answer.status_code != 200:
        return [f"{operation}: {answer.status_code} {answer.text}"]
    return [fault for part in bodies(answer.text) for fault in faults(operation, part)]


def fill_in(value: Any, names: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: fill_in(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_in(item, names) for item in value]
    if isinstance(value, str):
        if value[:1] == "{" and value[1:-1] in names:
            return names[value[1:-1]]
        for name, known in names.items():
            value = value.replace(f"{{{name}}}", str(known))
    return value
