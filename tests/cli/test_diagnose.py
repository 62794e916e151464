"""``det master diagnose``: the state of a cluster in one archive, with secrets masked."""

import tarfile
from pathlib import Path

from .conftest import Det, FakeMaster, Stream

LOG = {"timestamp": "2026-11-23T07:00:00Z", "level": "LOG_LEVEL_INFO", "message": "token=hunter2secret"}


def test_the_archive_of_diagnose_has_every_part_and_no_secret(fake: FakeMaster, det: Det, tmp_path: Path) -> None:
    fake.answers.update(
        {
            "GET /api/v1/master": {"version": "0.38.1"},
            "GET /health": (503, {"status": "full", "error": {"error": "the disk is full"}}),
            "GET /detent/storage": {"storages": []},
            "GET /api/v1/master/config": {
                "config": {"db": {"password": "hunter2secret", "WANDB_API_KEY": "hunter2secret"}}
            },
            "GET /api/v1/agents": {"agents": [{"id": "one"}], "pagination": {"total": 1}},
            "GET /detent/cluster/overview": {"queue": []},
            "GET /detent/events": {"events": []},
            "GET /prom/det-state-metrics": b"detent_agents 1\n",
            "GET /debug/prom/metrics": b"process_threads 9\n",
            "GET /api/v1/master/logs": Stream([{"logEntry": LOG}]),
        }
    )
    outcome = det("master", "diagnose", "-o", str(tmp_path / "out"))
    assert outcome.code == 0
    with tarfile.open(outcome.out.strip()) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    parts = {path.name: path.read_text() for path in (tmp_path / "unpacked").rglob("*") if path.is_file()}
    assert sorted(parts) == [
        "agents.json",
        "config.json",
        "events.json",
        "health.json",
        "master.log",
        "overview.json",
        "process.prom",
        "state.prom",
        "storage.json",
        "versions.json",
    ]
    assert '"status": "full"' in parts["health.json"]
    assert parts["state.prom"] == "detent_agents 1\n"
    assert parts["master.log"].startswith("2026-11-23T07:00:00Z [INFO]: token=")
    assert "hunter2secret" not in "".join(parts.values())
