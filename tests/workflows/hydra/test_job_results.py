"""Waiting for the jobs of an experiment, with prepared answers of a master."""

import logging

import pytest

from determined.errors import MasterUnreachable
from determined_workflows.hydra import job_results
from determined_workflows.hydra.job_results import Outcome, wait


class Answers:
    """A session whose experiment goes through ``states``. Each is a state and the trials at that time."""

    def __init__(self, *states, metrics=()):
        self.states, self.metrics, self.killed = list(states), list(metrics), False

    def get(self, path, query=None, **_):
        if path.endswith("/trials"):
            return {"trials": self.now[1], "pagination": {"total": len(self.now[1]), "offset": 0}}
        self.now = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if self.now[0] is None:
            raise MasterUnreachable("away")
        return {"experiment": {"state": f"STATE_{self.now[0]}"}}

    def post(self, path, *_, **__):
        self.killed = path.endswith("/kill")
        return {}

    def stream(self, path, query=None, **_):
        reports = [
            {
                "trialId": trial,
                "trialRunId": 1,
                "totalBatches": 1,
                "endTime": "2026-01-01T00:00:00Z",
                "metrics": {"validation_metrics" if group == "validation" else "avg_metrics": {"return_value": value}},
                "group": group,
            }
            for trial, group, value in self.metrics
            if group == query["group"]
        ]
        return iter([{"metrics": reports}])


def trial(number, state, failure=None):
    return {
        "id": 10 + number,
        "state": f"STATE_{state}",
        "hparams": {"hydra": {"job": number}},
        "failure": failure,
    }


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(job_results, "POLL_SECONDS", 0)


def test_wait_returns_the_value_or_the_failure_of_each_job():
    trials = [trial(1, "COMPLETED"), trial(0, "ERROR", "ValueError: bad"), trial(2, "COMPLETED"), trial(3, "CANCELED")]
    session = Answers(("COMPLETED", trials), metrics=[(11, "validation", 0.5), (12, "hydra", [1, "a"])])
    assert wait(session, 1, 5) == [
        Outcome(failure="trial 10: ValueError: bad"),
        Outcome(value=0.5),
        Outcome(value=[1, "a"]),
        Outcome(failure="trial 13: it was canceled"),
        Outcome(failure="the experiment ended before the job began"),
    ]


def test_wait_continues_through_a_pause_and_logs_it_once(caplog):
    session = Answers(
        ("PAUSED", [trial(0, "PAUSED")]), ("PAUSED", []), ("ACTIVE", []), ("COMPLETED", [trial(0, "COMPLETED")])
    )
    assert wait(session, 7, 1) == [Outcome()]
    assert [record.message for record in caplog.records] == [
        "experiment 7 is paused; `det experiment activate 7` resumes it"
    ]


def test_a_failed_job_is_logged_while_other_jobs_run(caplog):
    running = [trial(0, "ERROR", "ValueError: bad"), trial(1, "RUNNING")]
    session = Answers(("ACTIVE", running), ("ACTIVE", running), ("COMPLETED", [running[0], trial(1, "COMPLETED")]))
    with caplog.at_level(logging.ERROR):
        wait(session, 1, 2)
    assert [record.message for record in caplog.records] == ["job 0 failed (trial 10): ValueError: bad"]
    assert not session.killed


def test_the_first_failure_kills_the_experiment_with_fail_fast():
    running = [trial(0, "ERROR", "ValueError: bad"), trial(1, "RUNNING")]
    session = Answers(("ACTIVE", running), ("ERROR", [running[0], trial(1, "CANCELED")]))
    wait(session, 1, 2, is_fail_fast=True)
    assert session.killed


def test_wait_continues_while_the_master_is_unavailable():
    session = Answers((None, []), (None, []), ("COMPLETED", [trial(0, "COMPLETED")]))
    assert wait(session, 1, 1) == [Outcome()]
