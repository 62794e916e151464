"""A sweep of Weights & Biases as a search of our own."""

import math
from pathlib import Path
from typing import Any

import pytest

from determined.errors import ConfigError
from determined_workflows.batch import sweep_search
from determined_workflows.batch.sweep_search import SweepSearch, TrialCommand

FILE = Path("sweeper.yml")
SWEEP: dict[str, Any] = {
    "program": "main.py",
    "metric": {"name": "accuracy", "goal": "maximize"},
    "parameters": {"lr": {"values": [0.1, 0.01]}, "seed": {"value": 3}},
}


def search(searcher: str = "random", count: int | None = 4, **changes: object) -> SweepSearch:
    return sweep_search.of({**SWEEP, **changes}, searcher, count, FILE)


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ({"value": 3}, {"type": "const", "val": 3}),
        ({"values": ["a", "b"]}, {"type": "categorical", "vals": ["a", "b"]}),
        ({"min": 1, "max": 8}, {"type": "int", "minval": 1, "maxval": 8}),
        ({"min": 0.0, "max": 1}, {"type": "double", "minval": 0.0, "maxval": 1}),
        ({"min": 1, "max": 8, "distribution": "uniform"}, {"type": "double", "minval": 1, "maxval": 8}),
        (
            {"min": 0.001, "max": 0.1, "distribution": "log_uniform_values"},
            {"type": "log", "base": 10.0, "minval": math.log10(0.001), "maxval": math.log10(0.1)},
        ),
        (
            {"min": -5, "max": -1, "distribution": "log_uniform"},
            {"type": "log", "base": math.e, "minval": -5, "maxval": -1},
        ),
    ],
)
def test_a_parameter_becomes_a_hyperparameter(parameter: dict[str, Any], expected: dict[str, Any]) -> None:
    assert search(parameters={"x": parameter}).hyperparameters == {"x": expected}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"searcher": "bayes"}, '--searcher "bayes" is not valid: random, grid'),
        ({"count": None}, "--searcher random needs the number of trials: --count N"),
        ({"parameters": {}}, "`parameters` is needed"),
        ({"parameters": {"x": 3}}, "the parameter x is a mapping"),
        ({"parameters": {"x": {"min": 1}}}, "x needs value, values, or min and max"),
        ({"parameters": {"x": {"parameters": {}}}}, "x has parameters of its own"),
        ({"parameters": {"x": {"values": [1], "probabilities": [1]}}}, "`probabilities` of x cannot be kept"),
        ({"parameters": {"x": {"min": 0, "max": 1, "distribution": "log_uniform_values"}}}, "are above 0"),
        ({"parameters": {"x": {"min": 0, "max": 1, "distribution": "normal"}}}, "the distribution normal of x"),
        ({"searcher": "grid", "parameters": {"x": {"min": 0.0, "max": 1}}}, "a grid needs `values` of x"),
        ({"searcher": "adaptive_asha"}, "max_iter: N"),
        ({"metric": None}, "`metric` needs a name"),
        ({"metric": {"name": "a", "goal": "best"}}, "neither minimize nor maximize"),
        ({"command": ["python", "${args_json}"]}, r"\$\{args_json\} in `command` is not known"),
        ({"command": "python"}, "`command` is a list of words"),
    ],
)
def test_what_our_searchers_cannot_do_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        search(**changes)


def test_metric_and_direction_are_those_of_the_sweep() -> None:
    assert search().searcher == {
        "name": "random",
        "metric": "accuracy",
        "smaller_is_better": False,
        "max_trials": 4,
    }
    assert search(metric={"name": "loss"}).searcher["smaller_is_better"] is True


def test_halving_has_the_longest_trial_of_early_terminate_and_says_who_reports() -> None:
    found = search("adaptive_asha", early_terminate={"type": "hyperband", "max_iter": 27, "eta": 3})
    assert {"time_metric": "batches", "max_time": 27, "divisor": 3}.items() <= found.searcher.items()
    assert "validation metric accuracy" in found.notes[0]
    assert "has no effect with --searcher random" in search(early_terminate={"max_iter": 27}).notes[0]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (None, TrialCommand("/usr/bin/env python main.py", "values", "")),
        (["python3", "${program}", "${args_no_hyphens}", "a b"], TrialCommand("python3 main.py", "bare", "'a b'")),
        (["python", "${program}", "${args_no_boolean_flags}"], TrialCommand("python main.py", "flags", "")),
        (["echo", "x"], TrialCommand("echo x", "", "")),
    ],
)
def test_the_command_of_a_sweep_becomes_that_of_the_trials(command: object, expected: TrialCommand) -> None:
    assert search(command=command).command == expected


def test_a_sweep_without_a_program_leaves_the_command_to_the_command_file() -> None:
    assert search(program=None).command is None
