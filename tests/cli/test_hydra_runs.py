"""``det hydra status``, ``logs``, ``stop`` and ``retry`` of a run on the cluster, found by its record."""

from pathlib import Path
from typing import Any

import pytest

from determined_workflows.hydra.run_record import Record

from .conftest import Det, FakeMaster, Stream

EXPERIMENT = "/api/v1/experiments/7"


def trial(number: int, job: int, state: str) -> dict[str, Any]:
    hparams = {"hydra": {"job": job, "overrides": f"lr={job}"}}
    return {"id": number, "experimentId": 7, "state": f"STATE_{state}", "hparams": hparams}


@pytest.fixture
def folder(fake: FakeMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the folder of a multirun whose experiment 7 has two trials, and one that has not begun."""
    monkeypatch.chdir(tmp_path)
    Record("det", 3, fake.url, 7).write(tmp_path / "sweep")
    found = [trial(12, 1, "RUNNING"), trial(11, 0, "COMPLETED")]
    set_state(fake, "ACTIVE")
    fake.answers[f"GET {EXPERIMENT}/trials"] = {"trials": found, "pagination": {"total": 2}}
    for each in found:
        fake.answers[f"GET /api/v1/trials/{each['id']}"] = {"trial": {**each, "state": "STATE_COMPLETED"}}
        line = {"id": 1, "message": f"line of trial {each['id']}\n"}
        fake.answers[f"GET /api/v1/trials/{each['id']}/logs"] = Stream([line])
    return "sweep"


def set_state(fake: FakeMaster, state: str) -> None:
    fake.answers[f"GET {EXPERIMENT}"] = {"experiment": {"id": 7, "state": f"STATE_{state}"}}


def test_status_shows_the_trial_of_each_job_and_those_that_wait(fake: FakeMaster, det: Det, folder: str) -> None:
    assert det("hydra", "status", folder).out.splitlines() == [
        "completed   0  (lr=0, trial 11)",
        "running     1  (lr=1, trial 12)",
        "waiting     2",
        f"Experiment 7 of {fake.url}: active",
        "Jobs: 3 (1 completed, 1 running, 1 waiting)",
    ]


def test_status_of_a_later_batch_of_a_sweeper_begins_with_its_first_job(
    fake: FakeMaster, det: Det, folder: str
) -> None:
    Record("det", 2, fake.url, 7, first_job=1).write(Path(folder))
    found = [trial(12, 1, "RUNNING")]
    fake.answers[f"GET {EXPERIMENT}/trials"] = {"trials": found, "pagination": {"total": 1}}
    assert det("hydra", "status", folder).out.splitlines()[:2] == ["running     1  (lr=1, trial 12)", "waiting     2"]
    assert "its jobs are 1 to 2" in det("hydra", "logs", folder, "--job", "0").err


def test_logs_prints_the_trials_that_have_begun_in_the_order_of_their_jobs(det: Det, folder: str) -> None:
    outcome = det("hydra", "logs", folder)
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "==> job 0 (trial 11) <==",
        "line of trial 11",
        "==> job 1 (trial 12) <==",
        "line of trial 12",
    ]
    assert det("hydra", "logs", folder, "--job", "1").out == "line of trial 12\n"


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("2", "job 2 of experiment 7 has not begun yet"),
        ("3", "experiment 7 has no job 3; its jobs are 0 to 2"),
        ("-1", "experiment 7 has no job -1; its jobs are 0 to 2"),
    ],
)
def test_logs_of_a_job_without_a_trial_says_why(det: Det, folder: str, job: str, message: str) -> None:
    outcome = det("hydra", "logs", folder, f"--job={job}")
    assert (outcome.code, outcome.err) == (3, f"det: {message}\n")


def test_logs_with_follow_leaves_out_jobs_that_never_begin(fake: FakeMaster, det: Det, folder: str) -> None:
    set_state(fake, "CANCELED")
    outcome = det("hydra", "logs", "-f", folder)
    assert outcome.code == 0
    assert [line for line in outcome.out.splitlines() if line.startswith("==>")] == [
        "==> job 0 (trial 11) <==",
        "==> job 1 (trial 12) <==",
    ]


@pytest.mark.parametrize(("flags", "verb"), [((), "cancel"), (("--now",), "kill")])
def test_stop_ends_the_experiment(fake: FakeMaster, det: Det, folder: str, flags: tuple[str, ...], verb: str) -> None:
    fake.answers[f"POST {EXPERIMENT}/{verb}"] = {}
    outcome = det("hydra", "stop", folder, *flags)
    assert (outcome.code, outcome.err) == (0, "experiment 7 is ending; `det hydra status sweep` shows its jobs\n")
    assert len(fake.requests_to(f"POST {EXPERIMENT}/{verb}")) == 1


def test_stop_of_an_experiment_that_has_ended_is_refused(fake: FakeMaster, det: Det, folder: str) -> None:
    set_state(fake, "COMPLETED")
    outcome = det("hydra", "stop", folder)
    assert (outcome.code, outcome.err) == (7, f"det: experiment 7 of {fake.url} has ended already\n")


def test_the_master_of_the_record_is_asked_and_not_the_default_one(
    fake: FakeMaster, det: Det, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    assert det("hydra", "status", folder).code == 0
    assert det("-m", "http://127.0.0.1:1", "hydra", "status", folder).code in (5, 6)


def test_retry_continues_the_experiment_with_settings(fake: FakeMaster, det: Det, folder: str) -> None:
    fake.answers["POST /api/v1/experiments/continue"] = {"experiment": {"id": 7}}
    outcome = det("hydra", "retry", folder, "--config", "max_restarts=2")
    assert (outcome.code, outcome.out) == (0, "Continued experiment 7\n")
    (request,) = fake.requests_to("POST /api/v1/experiments/continue")
    assert request.json["id"] == 7
    assert "max_restarts: 2" in request.json["overrideConfig"]
    assert det("hydra", "continue", folder, "--dry-run").out == "det experiment continue 7\n"
    assert len(fake.requests_to("POST /api/v1/experiments/continue")) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--on", "local"), "the files of sweep are on the cluster, in experiment 7; use --on det"),
        (("--new_overrides", "lr=1"), "experiment 7 continues with its own overrides from its newest checkpoints; use"),
        (("--checkpoint_step", "3"), "experiment 7 continues with its own overrides from its newest checkpoints; use"),
    ],
)
def test_retry_refuses_what_an_experiment_cannot_take(
    fake: FakeMaster, det: Det, folder: str, words: tuple[str, ...], message: str
) -> None:
    outcome = det("hydra", "retry", folder, *words)
    assert outcome.code == 4
    assert outcome.err.startswith(f"det: {message}")
    assert fake.requests == []
