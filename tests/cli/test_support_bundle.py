"""``det trial support-bundle``: all data about a trial in one archive, with secrets masked."""

import json
import tarfile
from pathlib import Path
from typing import Any

from .conftest import Det, FakeMaster, Stream, error

TEXT = "environment: {environment_variables: [API_KEY=hunter2secret]}\n"
LOG = ["connecting to postgres://ann:hunter2secret@host/db\n", "token=hunter2secret\n", "epoch 1\n"]


def page(key: str, *rows: Any) -> Any:
    return {key: list(rows), "pagination": {"total": len(rows)}}


def test_a_support_bundle_has_every_part_and_no_secret(fake: FakeMaster, det: Det, tmp_path: Path) -> None:
    config = {"environment": {"environment_variables": {"cpu": ["API_KEY=hunter2secret"]}}, "max_restarts": 5}
    fake.answers.update(
        {
            "GET /api/v1/trials/9": {"trial": {"id": 9, "experimentId": 7, "state": "STATE_ERROR"}},
            "GET /api/v1/experiments/7": {"experiment": {"id": 7, "config": config, "originalConfig": TEXT}},
            "GET /api/v1/master": {"version": "0.38.1"},
            "GET /detent/trials/9/attempts": error(500, 13, "broken"),
            "GET /api/v1/trials/9/workloads": page("workloads", {"training": {"totalBatches": 5}}),
            "GET /api/v1/trials/9/logs": Stream([{"message": line} for line in LOG]),
        }
    )
    outcome = det("trial", "support-bundle", "9", "-o", str(tmp_path / "out"))
    assert outcome.code == 0
    assert "attempts.json: broken" in outcome.err
    with tarfile.open(outcome.out.strip()) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    parts = {path.name: path.read_text() for path in (tmp_path / "unpacked").rglob("*") if path.is_file()}
    assert sorted(parts) == [
        "attempts.json.error",
        "experiment.json",
        "log.txt",
        "metrics.json",
        "trial.json",
        "versions.json",
    ]
    assert json.loads(parts["experiment.json"])["config"]["max_restarts"] == 5
    assert "hunter2secret" not in "".join(parts.values())
    assert parts["log.txt"].splitlines()[0] == "connecting to postgres://ann:********@host/db"
    assert parts["log.txt"].endswith("epoch 1\n")
