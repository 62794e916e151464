"""Optuna as a search method: its search space, its restart, and its errors."""

import importlib.util
import json
import random
from typing import Any

import pytest

from determined.searcher import SearchContext, TrialClosed, TrialValidated
from determined.searcher.search_run import SearchRun

pytest.importorskip("optuna")

from determined.searcher.optuna_search import InvalidArguments, OptunaMissing, OptunaSearch
from determined.searcher.optuna_space import distributions, hparams_of

SPACE = {
    "rate": {"type": "log", "minval": -4, "maxval": -1, "base": 10.0},
    "net": {
        "layers": {"type": "int", "minval": 1, "maxval": 8},
        "sizes": {"type": "categorical", "vals": [[1, 2], None, "wide", {"a": 1}]},
        "kind": {"type": "const", "val": "cnn"},
    },
    "drop": {"type": "double", "minval": 0.0, "maxval": 1.0},
}


def context(**arguments: Any) -> SearchContext:
    return SearchContext(SPACE, "loss", max_trials=9, max_concurrent_trials=3, seed=5, arguments=arguments)


def play(arguments: dict[str, Any], *, restarts: bool) -> list[dict[str, Any]]:
    """Runs a search in which trials report up to four times. Returns all actions."""
    run = SearchRun(OptunaSearch(context(**arguments)))
    rng = random.Random(1)
    actions = run.begin().actions
    log, steps, stopped = list(actions), {}, set()
    while True:
        steps |= {action["request_id"]: 0 for action in actions if action["kind"] == "create"}
        stopped |= {action["request_id"] for action in actions if action["kind"] == "stop"}
        if any(action["kind"] == "shutdown" for action in actions):
            return log
        name = rng.choice(sorted(steps))
        if name in stopped or steps[name] == 4:
            del steps[name]
            event: Any = TrialClosed(name, "searcher_stopped" if name in stopped else "completed")
        else:
            steps[name] += 1
            event = TrialValidated(name, steps[name], float(steps[name]), rng.random() / steps[name])
        if restarts:
            stored = json.loads(json.dumps(run.snapshot()))
            run = SearchRun(OptunaSearch(context(**arguments)))
            run.restore(stored)
        actions = run.process(event).actions
        log += actions


@pytest.mark.parametrize(
    "arguments",
    [
        {"sampler": "tpe", "pruner": "median"},
        {"sampler": {"name": "tpe", "multivariate": True, "n_startup_trials": 2}, "pruner": "hyperband"},
        {"sampler": "cmaes", "pruner": "successive_halving"},
        {"sampler": "random", "pruner": {"name": "percentile", "percentile": 30.0, "n_startup_trials": 2}},
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_search_that_restarts_after_each_event_decides_as_an_uninterrupted_one(arguments: dict[str, Any]):
    straight = play(arguments, restarts=False)
    assert play(arguments, restarts=True) == straight
    assert sum(action["kind"] == "create" for action in straight) == 9


def test_hyperparameters_of_optuna_are_in_the_configured_space():
    actions = play({"sampler": "random"}, restarts=False)
    points = [action["hparams"] for action in actions if action["kind"] == "create"]
    assert len({json.dumps(point) for point in points}) == 9
    for point in points:
        assert 1e-4 <= point["rate"] < 1e-1
        assert point["net"]["sizes"] in SPACE["net"]["sizes"]["vals"]
        assert (point["net"]["kind"], point["net"]["layers"] in range(1, 9)) == ("cnn", True)
        assert 0.0 <= point["drop"] < 1.0
    assert sorted(distributions(SPACE)) == ["drop", "net.layers", "net.sizes", "rate"]
    assert hparams_of(SPACE, {"drop": 1.0, "rate": -1.0, "net.layers": 8, "net.sizes": 3})["drop"] < 1.0


def test_a_name_with_a_dot_differs_from_a_name_in_a_group():
    leaf = {"type": "int", "minval": 1, "maxval": 2}
    assert len(distributions({"a.b": leaf, "a": {"b": leaf}})) == 2


def test_a_pruned_trial_is_stopped_with_a_reason_and_a_failed_trial_counts_as_failed():
    pruner = {"name": "percentile", "percentile": 1.0, "n_startup_trials": 1}
    run = SearchRun(OptunaSearch(context(pruner=pruner)))
    first, second, third = (action["request_id"] for action in run.begin().actions)
    run.process(TrialValidated(first, 1, 1.0, 0.1))
    run.process(TrialClosed(first, "completed"))
    (stop,) = run.process(TrialValidated(second, 1, 1.0, 0.9)).actions
    assert (stop["kind"], stop["reason"]) == ("stop", "stopped by PercentilePruner after 1 batches (loss 0.9)")
    assert run.process(TrialValidated(second, 2, 2.0, 0.9)).actions == []
    run.process(TrialClosed(third, "errored"))
    states = [trial["state"] for trial in run.snapshot()["method"]["trials"]]
    assert states[:3] == ["COMPLETE", "PRUNED", "FAIL"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"sampler": {"name": "tpe", "speed": 3}}, "searcher.sampler: TPESampler refuses its arguments: .*speed"),
        ({"pruner": "percentile"}, "searcher.pruner: PercentilePruner refuses its arguments: .*percentile"),
    ],
)
def test_arguments_that_optuna_refuses_are_named(arguments: dict[str, Any], text: str):
    with pytest.raises(InvalidArguments, match=text):
        OptunaSearch(context(**arguments))


def test_the_error_without_optuna_names_the_install_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OptunaMissing, match=r"has no optuna, cmaes: install it with `pip install optuna cmaes` there"):
        OptunaSearch(context(sampler="cmaes"))
