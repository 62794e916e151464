"""``det runner logs``, ``status`` and ``stop`` of a grid that runs on the cluster, and ``--on``."""

from pathlib import Path
from typing import Any

import pytest

from determined_workflows.runner.cluster.record import Record

from .conftest import Det, FakeMaster, Stream

EXPERIMENT = "/api/v1/experiments/7"
EXPERIMENT_7 = {"id": 7, "name": "grid", "state": "STATE_ACTIVE", "config": {}}


def trial(number: int, name: str, state: str) -> dict[str, Any]:
    return {"id": number, "experimentId": 7, "state": f"STATE_{state}", "hparams": {"_name": name}}


@pytest.fixture
def output(fake: FakeMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an output whose grid runs as experiment 7, of which one of two tasks has begun."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "output"
    folder.mkdir()
    Record(fake.url, 7, ["Lr_0.1", "Lr_0.2"]).write(folder)
    found = trial(11, "Lr_0.1", "RUNNING")
    fake.answers.update(
        {
            f"GET {EXPERIMENT}": {"experiment": EXPERIMENT_7},
            f"GET {EXPERIMENT}/trials": {"trials": [found], "pagination": {"total": 1}},
            "GET /api/v1/trials/11": {"trial": {**found, "state": "STATE_COMPLETED"}},
            "GET /api/v1/trials/11/logs": Stream([{"id": 1, "message": "training\n"}]),
        }
    )
    return folder


@pytest.mark.parametrize("words", [("Lr_0.1",), ("output/Lr_0.1",), ("Lr_0.1", "-f")])
def test_logs_of_a_task_prints_the_log_of_its_trial(det: Det, output: Path, words: tuple[str, ...]) -> None:
    outcome = det("runner", "logs", *words)
    assert (outcome.code, outcome.out) == (0, "training\n")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("Lr_0.2", "the task Lr_0.2 has not started yet; `det runner status` prints the states of all"),
        ("lr_0.1", 'experiment 7 has no task "lr_0.1"; did you mean "Lr_0.1"?'),
        ("x", 'experiment 7 has no task "x"; `det runner status` prints the names of all'),
    ],
)
def test_logs_of_a_task_without_a_trial_says_why(det: Det, output: Path, task: str, message: str) -> None:
    outcome = det("runner", "logs", task)
    assert (outcome.code, outcome.out, outcome.err) == (3, "", f"det: {message}\n")


def test_status_asks_the_master_that_runs_the_grid(
    det: Det, fake: FakeMaster, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    outcome = det("runner", "status")
    assert outcome.out.splitlines()[-2:] == [f"Experiment 7 of {fake.url}: active", "Tasks: 2 (1 running, 1 waiting)"]


@pytest.mark.parametrize(("flags", "verb"), [((), "cancel"), (("--now",), "kill")])
def test_stop_ends_the_experiment(det: Det, fake: FakeMaster, output: Path, flags: tuple[str, ...], verb: str) -> None:
    fake.answers[f"POST {EXPERIMENT}/{verb}"] = {}
    assert det("runner", "cancel", *flags).code == 0
    assert len(fake.requests_to(f"POST {EXPERIMENT}/{verb}")) == 1


@pytest.mark.parametrize("verb", ["run", "retry"])
@pytest.mark.parametrize("flags", [("--detach",), ("--config", "max_restarts=1")])
def test_flags_of_the_cluster_are_refused_without_it(det: Det, verb: str, flags: tuple[str, ...]) -> None:
    outcome = det("runner", verb, *flags)
    assert (outcome.code, outcome.err) == (4, "det: --config and --detach have an effect only with --on det\n")
