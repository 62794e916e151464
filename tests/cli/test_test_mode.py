"""``det experiment create --test-mode`` on a cluster: the check, the reduced run, and its verdict."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import Det, FakeMaster, Request, Stream, error

CONFIG = """
description: digits
entrypoint: model:Trial
searcher: {name: random, metric: accuracy, smaller_is_better: false, max_trials: 9, max_length: {batches: 900}}
hyperparameters: {lr: {type: double, minval: 0, maxval: 1}, width: 8}
checkpoint_storage: {type: shared_fs, host_path: /data, save_trial_best: 3}
max_restarts: 5
"""


@pytest.fixture
def files(fake: FakeMaster, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (home / "ctx").mkdir()
    (home / "ctx" / "model.py").write_text("print(1)")
    (home / "exp.yaml").write_text(CONFIG)
    monkeypatch.chdir(home)
    plain = fake.answer
    monkeypatch.setattr(fake, "answer", lambda request: {} if "/contexts/" in request.path else plain(request))
    return home


def serve(fake: FakeMaster, end: str) -> None:
    states = iter(["STATE_QUEUED", "STATE_RUNNING", f"STATE_{end}"])

    def experiment(_: Request) -> Any:
        return {"experiment": {"id": 7, "state": next(states)}}

    def page(key: str, *rows: Any) -> Any:
        return {key: list(rows), "pagination": {"total": len(rows)}}

    trial = {"id": 9, "state": f"STATE_{end}", "runnerState": "training", "totalBatchesProcessed": 1}
    checkpoint = {"uuid": "u1", "state": "STATE_COMPLETED"}
    fake.answers.update(
        {
            "POST /api/v1/experiments": {"experiment": {"id": 7}, "config": {}},
            "GET /api/v1/experiments/7": experiment,
            "GET /api/v1/experiments/7/trials": page("trials", trial),
            "GET /api/v1/experiments/7/checkpoints": page("checkpoints", checkpoint),
            "GET /api/v1/trials/9/logs": Stream([{"message": "ValueError: bad shape\n"}]),
            "DELETE /api/v1/checkpoints": {},
        }
    )


def test_test_mode_validates_the_whole_configuration_and_creates_a_run_of_one_batch(
    fake: FakeMaster, det: Det, files: Path
) -> None:
    serve(fake, "COMPLETED")
    outcome = det("e", "create", "--test-mode", "exp.yaml", "ctx")
    assert (outcome.code, outcome.out) == (0, "Created experiment 7\n")
    assert outcome.err.endswith("test passed\n")
    assert "trial 9: completed, training, 1 batches" in outcome.err
    checked, created = (request.json for request in fake.requests_to("POST /api/v1/experiments"))
    assert checked["validateOnly"] is True
    assert checked["config"] == CONFIG
    assert created["activate"] is True
    assert "validateOnly" not in created
    config = yaml.safe_load(created["config"])
    assert config["description"] == "[test-mode] digits"
    assert config["searcher"] == {
        "name": "single",
        "metric": "accuracy",
        "smaller_is_better": False,
        "max_length": {"batches": 1},
    }
    assert (config["max_restarts"], config["scheduling_unit"]) == (0, 1)
    assert config["min_validation_period"] == {"batches": 1}
    assert 0 <= config["hyperparameters"]["lr"] < 1
    assert config["hyperparameters"]["width"] == 8
    storage = config["checkpoint_storage"]
    assert (storage["host_path"], storage["save_trial_best"], storage["save_trial_latest"]) == ("/data", 0, 0)
    assert fake.requests_to("DELETE /api/v1/checkpoints")[0].json == {"checkpointUuids": ["u1"]}


def test_test_mode_of_a_failing_trial_prints_the_log_and_exits_with_1(fake: FakeMaster, det: Det, files: Path) -> None:
    serve(fake, "ERROR")
    outcome = det("e", "create", "--test-mode", "exp.yaml", "ctx")
    assert (outcome.code, outcome.out) == (1, "Created experiment 7\nValueError: bad shape\n")
    assert outcome.err.endswith("test failed: experiment 7 ended: ERROR\n")
    assert fake.requests_to("DELETE /api/v1/checkpoints") == []


def test_test_mode_creates_no_run_if_the_master_refuses_the_configuration(
    fake: FakeMaster, det: Det, files: Path
) -> None:
    fake.answers["POST /api/v1/experiments"] = error(400, 3, "unknown pool")
    assert det("e", "create", "--test-mode", "exp.yaml", "ctx").code != 0
    assert len(fake.requests_to("POST /api/v1/experiments")) == 1
