"""Brackets, rungs and planned lengths of searches, and the configurations that describe them."""

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
def test_rungs_of_each_bracket(values, expected):
    assert bracket_rungs(ASHA | values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [(12, 8), (4, 4)]),
        ({"max_concurrent_trials": 5}, [(12, 3), (4, 2)]),
        ({"max_concurrent_trials": 1}, [(12, 1), (4, 1)]),
        ({"max_concurrent_trials": 0}, [(12, 4), (4, 4)]),
        ({"max_trials": 100, "max_concurrent_trials": 0}, [(60, 15), (25, 15), (15, 15)]),
    ],
)
def test_trials_and_concurrent_trials_of_each_bracket(values, expected):
    found = [(each.trials, each.concurrent) for each in brackets(ASHA | values)]
    assert len(found) == len(expected)
    assert sum(trials for trials, _ in found) == (ASHA | values)["max_trials"]
    if "max_trials" not in values:
        assert found == expected


@given(
    trials=st.integers(3, 500),
    maximum=st.integers(1, 10_000),
    divisor=st.sampled_from([2, 3, 4, 2.5]),
    mode=st.sampled_from(["aggressive", "standard", "conservative"]),
)
def test_every_plan_uses_all_its_trials(trials, maximum, divisor, mode):
    searcher = ASHA | {"max_trials": trials, "max_time": maximum, "divisor": divisor, "mode": mode}
    planned = brackets(searcher)
    assert sum(bracket.trials for bracket in planned) == trials
    for bracket in planned:
        assert bracket.units[-1] == maximum
        assert list(bracket.units) == sorted(bracket.units)
        assert 1 <= bracket.concurrent <= bracket.trials
        assert sum(planned_stops(bracket, divisor)) == bracket.trials
    lengths = planned_lengths({"searcher": searcher})
    assert sum(each.trials for each in lengths) == trials


def test_units_of_rungs():
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
def test_planned_lengths_of_each_searcher(searcher, expected):
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
def test_rules_between_the_fields_of_a_searcher(searcher, codes):
    axes = "hyperparameters: {lr: {type: double, minval: 0, maxval: 1}, net: {depth: 2}}"
    checked = check(f"{BASE}{axes}\nsearcher: {searcher}")
    assert [each.code for each in checked.diagnostics] == codes, checked.render()


@pytest.mark.parametrize("gone", ["sync_halving", "adaptive", "adaptive_simple", "custom", "pbt"])
def test_a_searcher_that_is_gone_names_its_replacement(gone):
    (found,) = check(f"{BASE}searcher: {{name: {gone}, metric: m, max_trials: 3}}").diagnostics
    assert found.code == "E402"
    assert found.hint is not None
    assert "use a" in found.hint or 'use "search_method"' in found.hint


def test_a_searcher_that_was_written_out_is_accepted_without_warnings():
    text = f"{BASE}searcher: {{name: adaptive_asha, metric: m, max_trials: 9, max_length: {{epochs: 9}}, "
    checked = check(text + "bracket_rungs: [2, 1]}")
    assert checked.config is not None, checked.render()
    written = checked.config.to_json()
    again = check(json.dumps(written))
    assert [each for each in again.diagnostics if each.path.startswith("searcher")] == []
    assert again.config is not None
    assert again.config.to_json() == written


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
def test_a_search_in_a_task_is_checked_before_it_runs(searcher, code, text):
    (found,) = check(f"{BASE}searcher: {{metric: m, {searcher}}}").diagnostics
    assert (found.code, text in found.message) == (code, True), found


def test_a_search_in_a_task_has_its_defaults():
    config = check(f"{BASE}searcher: {{metric: m, name: optuna, max_trials: 3}}").config
    assert config is not None
    found = config.to_json()["searcher"]
    wanted = {
        "sampler": "tpe",
        "pruner": "none",
        "max_concurrent_trials": 16,
        "event_timeout": 600,
        "time_metric": None,
    }
    assert {name: found[name] for name in wanted} == wanted
