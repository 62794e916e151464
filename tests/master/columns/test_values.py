"""The values of an experiment that are stored in columns."""

import math
from typing import Any

import pytest

from determined_master.experiment_index.cell_values import (
    MAX_NAMES,
    MAX_TEXT_LENGTH,
    Value,
    cell,
    of_experiment,
    scalar,
    wider,
)
from determined_master.experiment_index.index_repository import OfTrial
from determined_master.experiment_index.indexer import sources
from determined_master.metrics.summary import summarise

CONFIG = {
    "hyperparameters": {
        "width": {"type": "const", "val": 8},
        "lr": {"type": "log", "minval": -4},
        "net": {"depth": {"type": "const", "val": 2}, "act": "relu"},
    },
    "resources": {"slots_per_trial": 2, "devices": [], "weight": None},
    "debug": False,
}


def test_a_search_without_a_trial_shows_its_constants():
    values = of_experiment(CONFIG, None, {})
    cells = {name: cell(value) for (kind, name), value in values.items() if kind == "hyperparameter"}
    assert cells == {"hp.width": 8.0, "hp.net.depth": 2.0, "hp.net.act": "relu"}
    cells = {name: cell(value) for (kind, name), value in values.items() if kind == "config"}
    assert cells == {"config.resources.slots_per_trial": 2.0, "config.debug": False}


def test_metrics_keep_their_group_and_every_statistic():
    reports = [("training", {"loss": 2.0}), ("training", {"loss": math.nan}), ("mine", {"a.b": 1, "word": "x"})]
    values = of_experiment({}, {}, summarise(reports))
    assert values == {
        ("metric", "training.loss"): Value(None, "NaN", 2.0, 2.0, 2.0),
        ("metric", "mine.a.b"): Value(1.0, None, 1.0, 1.0, 1.0),
        ("metric", "mine.word"): Value(None, "x"),
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1, 1.0),
        (True, True),
        ("true", "true"),
        (math.nan, "NaN"),
        (math.inf, math.inf),
        (10**400, math.inf),
        ([1, "a"], '[1,"a"]'),
        ("x" * 5000, "x" * MAX_TEXT_LENGTH),
        ("a\0b", "ab"),
    ],
)
def test_a_value_is_stored_and_shown_as_its_cell(value: Any, shown: Any):
    stored = scalar(value, lists=True)
    assert stored is not None
    assert cell(stored) == shown


def test_values_that_no_column_can_hold_are_left_out():
    assert scalar(None) is None
    assert scalar([1]) is None
    assert of_experiment({}, {"a": {}, "b": None, "c" * 600: 1}, {"training": {"x": {"last": [1]}}}) == {}


def test_a_trial_cannot_fill_the_database_with_names():
    metrics = {f"step{i}": {"last": 1.0, "mean": 1.0} for i in range(MAX_NAMES + 500)}
    assert len(of_experiment({}, {"lr": 1}, {"training": metrics})) == MAX_NAMES


def test_the_type_of_a_column_only_widens():
    assert Value(1.0).type == "number"
    assert Value(1.0, "true").type == "boolean"
    assert Value(text="NaN").type == "number"
    assert Value(text="x").type == "text"
    assert wider("number", "boolean") == "number"
    assert wider("number", "text") == "text"


def trial(number: int, metric: float | None) -> OfTrial:
    return OfTrial(number, metric, 0, 0, False)


def test_a_search_shows_the_values_of_its_best_trial():
    one, two, three = trial(1, 0.5), trial(2, 0.1), trial(3, None)
    best = sources([one, two, three], smaller_is_better=True)
    assert (best.shown, best.metrics) == (two, two)
    best = sources([one, two, three], smaller_is_better=False)
    assert (best.shown, best.metrics) == (one, one)
    none = sources([trial(1, None), three], smaller_is_better=True)
    assert (none.shown, none.metrics) == (None, three)
    only = sources([three], smaller_is_better=True)
    assert (only.shown, only.metrics) == (three, three)
    assert sources([], smaller_is_better=True).metrics is None
