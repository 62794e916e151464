"""The best trial of a search in describe and wait, and the best stored checkpoints."""

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


def test_only_the_table_of_describe_ends_with_the_best_trial(master: FakeMaster, det: Det) -> None:
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
def test_the_list_of_best_checkpoints_leaves_out_deleted_ones(
    master: FakeMaster, det: Det, words: tuple[str, ...]
) -> None:
    assert [row["uuid"] for row in json.loads(det(*words, "--json").out)] == ["u2", "u3"]


def search_with_goals(master: FakeMaster, goals: dict[str, str]) -> None:
    """Prepares a search whose checkpoints and trials have two metrics beside the searcher's."""
    config = {**EXPERIMENT["config"], "metric_goals": goals}
    reports = {"u2": {"val/top5": 0.5, "wer": 3.0}, "u3": {"val/top5": 0.75, "wer": 9.0}}
    checkpoints = [
        {
            "uuid": uuid,
            "state": "STATE_COMPLETED",
            "training": {"trialId": 9, "searcherMetric": 0.5, "validationMetrics": {"avgMetrics": metrics}},
        }
        for uuid, metrics in reports.items()
    ]
    trials = [
        {**trial, "summaryMetrics": {"validation_metrics": {"val/top5": {"min": 0.1, "max": trial["id"] / 16}}}}
        for trial in TRIALS
    ]
    master.answers |= {
        "GET /api/v1/experiments/7": {"experiment": {**EXPERIMENT, "config": config}},
        "GET /api/v1/experiments/7/trials": {"trials": trials, "pagination": {"total": 3}},
        "GET /api/v1/experiments/7/checkpoints": {"checkpoints": checkpoints, "pagination": {"total": 2}},
    }


@pytest.mark.parametrize("words", [("e", "lc", "7"), ("checkpoint", "list", "7")], ids=" ".join)
def test_the_best_checkpoints_of_another_metric_follow_its_configured_goal(
    master: FakeMaster, det: Det, words: tuple[str, ...]
) -> None:
    search_with_goals(master, {"val/top5": "maximize", "wer": "minimize"})

    def best(metric: str, *more: str) -> list[tuple[str, float]]:
        rows = json.loads(det(*words, "--best", "2", "--metric", metric, *more, "--json").out)
        return [(row["uuid"], row["metric"]) for row in rows]

    assert best("val/top5") == [("u3", 0.75), ("u2", 0.5)]
    assert best("wer") == [("u2", 3.0), ("u3", 9.0)]
    assert best("wer", "--goal", "maximize") == [("u3", 9.0), ("u2", 3.0)]
    header = det(*words, "--metric", "wer").out.splitlines()[0]
    assert "wer" in header
    assert "Searcher Metric" not in header


@pytest.mark.parametrize("words", [("e", "lc", "7"), ("e", "download", "7")], ids=" ".join)
def test_best_by_a_metric_without_a_goal_is_an_error_with_the_remedy(
    master: FakeMaster, det: Det, words: tuple[str, ...]
) -> None:
    search_with_goals(master, {"wer": "minimize"})
    done = det(*words, "--best", "2", "--metric", "val/top5")
    assert (done.code, done.out) == (1, "")
    for part in ("does not say which values of val/top5 are better", "--goal minimize", "metric_goals"):
        assert part in done.err
    assert json.loads(det("e", "lc", "7", "--best", "1", "--metric", "val/top5", "--goal", "minimize", "--json").out)


def test_describe_shows_the_best_value_of_each_metric_with_a_goal(master: FakeMaster, det: Det) -> None:
    search_with_goals(master, {"val/top5": "maximize", "never": "minimize"})
    output = det("e", "describe", "7").out
    assert output.endswith("best val/top5: 0.625 (largest), trial 10\n")
    assert "never" not in output
