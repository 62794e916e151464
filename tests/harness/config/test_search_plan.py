"""Brackets, rungs and planned lengths of searches, and the checks of searcher configurations."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.config import check
from determined.config.search_plan import bracket_rungs, brackets, planned_lengths, planned_stops, rung_units

BASE = "entrypoint: a.py\ncheckpoint_storage: {type: shared_fs, host_path: /c}\n"
ASHA = {
    "name": "adaptive_asha",
    "metric": "loss",
    "time_metric": "batches",
    "max_time": 64,
    "max_trials": 16,
    "divisor": 4,
    "max_rungs": 5,
    "mode": "standard",
    "max_concurrent_trials": 16,
    "bracket_rungs": [],
}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [3, 2]),
        ({"mode": "aggressive"}, [3]),
        ({"mode": "conservative"}, [3, 2, 1]),
        ({"max_rungs": 2}, [2, 1]),
        ({"max_trials": 1000, "max_time": 1000}, [5, 4, 3]),
        ({"bracket_rungs": [1, 4]}, [4, 1]),
        # The logarithm of 243 to base 3 is rounded to less than 5.
        ({"divisor": 3, "max_time": 243, "max_trials": 1000, "max_rungs": 9, "mode": "aggressive"}, [6]),
    ],
)
def test_bracket_rungs_returns_the_rungs_of_each_bracket(values, expected):
    assert bracket_rungs(ASHA | values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [(12, 8), (4, 4)]),
        ({"max_concurrent_trials": 5}, [(12, 3), (4, 2)]),
        ({"max_concurrent_trials": 1}, [(12, 1), (4, 1)]),
        ({"max_concurrent_trials": 0}, [(12, 4), (4, 4)]),
        ({"max_trials": 100, "max_concurrent_trials": 0}, [(70, 8), (22, 8), (8, 8)]),
    ],
)
def test_brackets_divide_trials_and_concurrent_trials(values, expected):
    counts = [(bracket.trials, bracket.concurrent) for bracket in brackets(ASHA | values)]
    assert len(counts) == len(expected)
    assert sum(trials for trials, _ in counts) == (ASHA | values)["max_trials"]
    assert counts == expected


@given(
    trials=st.integers(3, 500),
    max_time=st.integers(1, 10_000),
    divisor=st.sampled_from([2, 3, 4, 2.5]),
    mode=st.sampled_from(["aggressive", "standard", "conservative"]),
)
def test_every_plan_uses_all_its_trials(trials, max_time, divisor, mode):
    searcher = ASHA | {"max_trials": trials, "max_time": max_time, "divisor": divisor, "mode": mode}
    planned = brackets(searcher)
    assert sum(bracket.trials for bracket in planned) == trials
    for bracket in planned:
        assert bracket.units[-1] == max_time
        assert list(bracket.units) == sorted(bracket.units)
        assert 1 <= bracket.concurrent <= bracket.trials
        assert sum(planned_stops(bracket, divisor)) == bracket.trials
    lengths = planned_lengths({"searcher": searcher})
    assert sum(length.trials for length in lengths) == trials


def test_rung_units_grow_by_the_divisor_up_to_the_maximum():
    assert rung_units(100, 4, 3) == (6, 25, 100)
    assert rung_units(2, 4, 3) == (1, 1, 2)
    assert rung_units(10, 1000, 100)[0] == 1


@pytest.mark.parametrize(
    ("searcher", "expected"),
    [
        ("{name: single, metric: m}", [(1, None)]),
        ("{name: random, metric: m, max_trials: 7, max_length: {epochs: 3}}", [(7, 3)]),
        ("{name: grid, metric: m, max_length: 8}", [(6, 8)]),
        ("{name: list, metric: m, trials: [{a: 1, b: 1}, {a: 2, b: 2}]}", [(2, None)]),
        ("{name: async_halving, metric: m, max_trials: 16, num_rungs: 3, max_length: 16}", [(12, 1), (3, 4), (1, 16)]),
        (
            "{name: adaptive_asha, metric: m, max_trials: 16, max_time: 64, time_metric: epochs}",
            [(9, 4), (5, 16), (2, 64)],
        ),
    ],
)
def test_planned_lengths_match_each_searcher(searcher, expected):
    axes = "hyperparameters: {a: {type: int, minval: 1, maxval: 2, count: 2}, b: {type: categorical, vals: [1, 2, 3]}}"
    checked = check(f"{BASE}{axes}\nsearcher: {searcher}")
    assert checked.config is not None, checked.render()
    assert planned_lengths(checked.config.to_json()) == expected


@pytest.mark.parametrize(
    ("searcher", "codes"),
    [
        ("{name: adaptive_asha, metric: m, max_trials: 9}", ["E311"]),
        ("{name: adaptive_asha, metric: m, max_trials: 9, time_metric: batches}", ["E311"]),
        ("{name: async_halving, metric: m, max_trials: 9, num_rungs: 2, max_length: {records: 9}}", ["E311"]),
        ("{name: async_halving, metric: m, max_trials: 9, num_rungs: 2, max_length: {batches: 0}}", ["E205"]),
        ("{name: async_halving, metric: m, max_trials: 9, num_rungs: 2, max_length: 9}", []),
        ("{name: async_halving, metric: m, max_trials: 9, num_rungs: 5, max_length: 9}", ["W504"]),
        ("{name: adaptive_asha, metric: m, max_trials: 1, max_length: 9, bracket_rungs: [2, 1]}", ["E312"]),
        ("{name: adaptive_asha, metric: m, max_trials: 9, max_length: 9, stop_once: true}", []),
        ("{name: adaptive_asha, metric: m, max_trials: 9, max_length: 9, divisor: 1}", ["E205"]),
        ("{name: list, metric: m, trials: []}", ["E205"]),
        ("{name: list, metric: m, trials: [{lr: 1}, {net: {depth: 3}}]}", ["E313"]),
        ("{name: list, metric: m, trials: [{lr: {type: log, minval: 1, maxval: 2}}]}", ["E313"]),
        ("{name: list, metric: m, trials: [{lr: {type: const, val: 2}, more: {a: 1}}]}", []),
    ],
)
def test_contradicting_fields_of_a_searcher_are_diagnosed(searcher, codes):
    axes = "hyperparameters: {lr: {type: double, minval: 0, maxval: 1}, net: {depth: 2}}"
    checked = check(f"{BASE}{axes}\nsearcher: {searcher}")
    assert [diagnostic.code for diagnostic in checked.diagnostics] == codes, checked.render()


@pytest.mark.parametrize("name", ["sync_halving", "adaptive", "adaptive_simple", "custom", "pbt"])
def test_a_removed_searcher_is_refused_with_its_replacement(name):
    (diagnostic,) = check(f"{BASE}searcher: {{name: {name}, metric: m, max_trials: 3}}").diagnostics
    assert diagnostic.code == "E402"
    assert diagnostic.hint is not None
    assert "use a" in diagnostic.hint or 'use "search_method"' in diagnostic.hint


def test_a_completed_searcher_is_accepted_without_warnings():
    text = f"{BASE}searcher: {{name: adaptive_asha, metric: m, max_trials: 9, max_length: {{epochs: 9}}, "
    checked = check(text + "bracket_rungs: [2, 1]}")
    assert checked.config is not None, checked.render()
    written = checked.config.to_json()
    second = check(json.dumps(written))
    assert [diagnostic for diagnostic in second.diagnostics if diagnostic.path.startswith("searcher")] == []
    assert second.config is not None
    assert second.config.to_json() == written


@pytest.mark.parametrize(
    ("searcher", "code", "text"),
    [
        ('name: search_method, method: "a:B"', "E202", 'missing field "max_trials"'),
        ("name: search_method, max_trials: 3", "E202", 'missing field "method"'),
        ("name: search_method, max_trials: 3, method: a", "E206", "expected module:Class or folder/file.py:Class"),
        ("name: search_method, max_trials: 0, method: 'a:B'", "E205", "searcher.max_trials"),
        ("name: search_method, max_trials: 3, method: 'a:B', event_timeout: 0", "E205", "searcher.event_timeout"),
        ("name: optuna, max_trials: 3, sampler: tpex", "E204", '"tpex" is none of tpe, random, cmaes, gp'),
        ("name: optuna, max_trials: 3, pruner: {name: best}", "E204", '"best" is none of none, median'),
        ("name: optuna, max_trials: 3, pruner: {n: 1}", "E201", "expected a name, or a mapping with a name"),
        ("name: optuna, max_trials: 3, sampler: {name: tpe, seed: 1}", "E206", "follows from reproducibility"),
    ],
)
def test_invalid_fields_of_a_search_in_a_task_are_errors(searcher, code, text):
    (diagnostic,) = check(f"{BASE}searcher: {{metric: m, {searcher}}}").diagnostics
    assert (diagnostic.code, text in diagnostic.message) == (code, True), diagnostic


def test_a_search_in_a_task_has_its_defaults():
    config = check(f"{BASE}searcher: {{metric: m, name: optuna, max_trials: 3}}").config
    assert config is not None
    searcher = config.to_json()["searcher"]
    defaults = {
        "sampler": "tpe",
        "pruner": "none",
        "max_concurrent_trials": 16,
        "event_timeout": 600,
        "time_metric": None,
    }
    assert {name: searcher[name] for name in defaults} == defaults
