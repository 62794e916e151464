"""The best trial of a search in describe, wait and create -f, and the best checkpoints that are still stored."""

import json
from typing import Any

import pytest

from .conftest import Det, FakeMaster, error

BEST = "best trial 9: val/acc 0.875, the largest of 3 trials; lr 0.001, optimizer.name adam"
EXPERIMENT: dict[str, Any] = {
    "id": 7,
    "name": "search",
    "state": "STATE_COMPLETED",
    "numTrials": 3,
    "bestTrialId": 9,
    "bestTrialSearcherMetric": 0.875,
    "config": {"searcher": {"name": "random", "metric": "val/acc", "smaller_is_better": False}},
}
TRIALS = [
    {"id": 8, "state": "STATE_COMPLETED", "hparams": {"lr": 0.1}, "searcherMetricValue": 0.5},
    {
        "id": 9,
        "state": "STATE_COMPLETED",
        "hparams": {"lr": 0.001, "optimizer": {"name": "adam"}},
        "searcherMetricValue": 0.875,
    },
    {"id": 10, "state": "STATE_ERROR", "hparams": {"lr": 1.0}, "searcherMetricValue": None},
]


@pytest.fixture
def master(fake: FakeMaster) -> FakeMaster:
    states = {"u1": "DELETED", "u2": "COMPLETED", "u3": "COMPLETED"}
    checkpoints = [
        {"uuid": uuid, "state": f"STATE_{state}", "training": {"trialId": 9, "searcherMetric": metric}}
        for (uuid, state), metric in zip(states.items(), (0.9, 0.8, 0.7), strict=True)
    ]
    fake.answers.update(
        {
            "GET /api/v1/experiments/7": {"experiment": EXPERIMENT},
            "GET /detent/experiments/7/status": {"waitedSeconds": 0, "ranSeconds": 1},
            "GET /api/v1/experiments/7/trials": {"trials": TRIALS, "pagination": {"total": 3}},
            "GET /api/v1/trials/9": {"trial": TRIALS[1]},
            "GET /api/v1/experiments/7/checkpoints": {"checkpoints": checkpoints, "pagination": {"total": 3}},
        }
    )
    return fake


def test_wait_ends_with_the_best_trial(master: FakeMaster, det: Det) -> None:
    done = det("e", "wait", "7")
    assert done.code == 0
    assert " ".join(done.err.split()) == f"experiment 7 ended: COMPLETED {BEST}"
    assert max(map(len, done.err.splitlines())) <= 80


def test_describe_ends_with_the_best_trial_in_its_table_only(master: FakeMaster, det: Det) -> None:
    assert " ".join(det("e", "describe", "7").out.split()).endswith(BEST)
    assert "best trial" not in det("e", "describe", "7", "--csv").out
    assert json.loads(det("e", "describe", "7", "--json").out)[0]["best_trial_id"] == 9


@pytest.mark.parametrize("changes", [{"numTrials": 1}, {"bestTrialId": None}])
def test_a_single_trial_and_a_search_without_a_value_have_no_best_trial(
    master: FakeMaster, det: Det, changes: dict[str, Any]
) -> None:
    master.answers["GET /api/v1/experiments/7"] = {"experiment": {**EXPERIMENT, **changes}}
    assert "best trial" not in det("e", "wait", "7").err
    assert "best trial" not in det("e", "describe", "7").out


def test_the_exit_code_of_wait_does_not_depend_on_the_best_trial(master: FakeMaster, det: Det) -> None:
    master.answers["GET /api/v1/trials/9"] = error(404, 5, "trial 9 not found")
    done = det("e", "wait", "7")
    assert done.code == 0
    assert "cannot show the best trial: trial 9 not found" in done.err


@pytest.mark.parametrize("words", [("e", "lc", "7", "--best", "2"), ("checkpoint", "list", "7", "--best", "2")])
def test_the_best_checkpoints_are_those_that_are_stored(master: FakeMaster, det: Det, words: tuple[str, ...]) -> None:
    assert [each["uuid"] for each in json.loads(det(*words, "--json").out)] == ["u2", "u3"]
