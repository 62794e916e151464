"""Whole numbers with a decimal point or an exponent."""

import json

import pytest

from determined.config import check
from determined.config.checking import check_changes
from determined.config.command import check_command

SMALL = "entrypoint: python3 train.py\n"
SINGLE = SMALL + "searcher: {name: single, metric: loss}\n"
DEFAULTS = [{"checkpoint_storage": {"type": "shared_fs", "host_path": "/c"}}]
EQUAL_CONFIGURATIONS = [
    (SINGLE + "max_restarts: 2.0", SINGLE + "max_restarts: 2"),
    (SINGLE + "scheduling_unit: 1e3", SINGLE + "scheduling_unit: 1000"),
    (SINGLE + "preemption_timeout: 1.2e2", SINGLE + "preemption_timeout: 120"),
    (
        SINGLE + "resources: {slots_per_trial: 4.0, max_slots: 8.0}",
        SINGLE + "resources: {slots_per_trial: 4, max_slots: 8}",
    ),
    (SINGLE + "resources: {shm_size: 1e9}", SINGLE + "resources: {shm_size: 1000000000}"),
    (SINGLE + "reproducibility: {experiment_seed: 7.0}", SINGLE + "reproducibility: {experiment_seed: 7}"),
    (SINGLE + "min_validation_period: {batches: 1e2}", SINGLE + "min_validation_period: {batches: 100}"),
    (
        SINGLE + "environment: {proxy_ports: [{proxy_port: 8e3}]}",
        SINGLE + "environment: {proxy_ports: [{proxy_port: 8000}]}",
    ),
    (SINGLE + "environment: {ports: {a: 8e3}}", SINGLE + "environment: {ports: {a: 8000}}"),
    (
        SINGLE + "checkpoint_storage: {save_trial_best: 3.0}",
        SINGLE + "checkpoint_storage: {save_trial_best: 3}",
    ),
    (
        SMALL + "searcher: {name: random, metric: m, max_trials: 3.0, max_length: {batches: 1e3}}",
        SMALL + "searcher: {name: random, metric: m, max_trials: 3, max_length: {batches: 1000}}",
    ),
    (
        SMALL + "searcher: {name: random, metric: m, max_trials: 3, max_length: 1e3}",
        SMALL + "searcher: {name: random, metric: m, max_trials: 3, max_length: 1000}",
    ),
    (
        SMALL + "searcher: {name: adaptive_asha, metric: m, max_trials: 16.0, time_metric: batches, max_time: 1e3,"
        " bracket_rungs: [2.0, 3.0], divisor: 4}",
        SMALL + "searcher: {name: adaptive_asha, metric: m, max_trials: 16, time_metric: batches, max_time: 1000,"
        " bracket_rungs: [2, 3], divisor: 4.0}",
    ),
    (
        SINGLE + "hyperparameters: {g: {n: {type: int, minval: 1.0, maxval: 1e2, count: 4.0}}}",
        SINGLE + "hyperparameters: {g: {n: {type: int, minval: 1, maxval: 100, count: 4}}}",
    ),
]


@pytest.mark.parametrize(("written", "plain"), EQUAL_CONFIGURATIONS)
def test_a_whole_number_with_a_point_or_an_exponent_equals_the_plain_number(written: str, plain: str) -> None:
    first, second = (check(text, defaults=DEFAULTS, seed=1, now=1.0) for text in (written, plain))
    assert first.config is not None, first.render()
    assert second.config is not None, second.render()
    assert json.dumps(first.config.to_json()) == json.dumps(second.config.to_json())


def test_values_of_hyperparameters_and_data_stay_floating_point() -> None:
    checked = check(
        SINGLE
        + "hyperparameters: {a: 2.0, b: {type: const, val: 3.0}, c: {type: categorical, vals: [1.0, 2]}}\ndata: {a: 1.0}",
        defaults=DEFAULTS,
    )
    assert checked.config is not None
    values = checked.config.to_json()
    assert (
        json.dumps([part.get("val", part.get("vals")) for part in values["hyperparameters"].values()])
        == "[2.0, 3.0, [1.0, 2]]"
    )
    assert json.dumps(values["data"]) == '{"a": 1.0}'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("max_restarts: 2.5", 'exp.yaml:3:15: error[E201]: "max_restarts" is a number (2.5), expected a whole number'),
        (
            "max_restarts: 1e30",
            'exp.yaml:3:15: error[E201]: "max_restarts" is a number (1e+30), expected a whole number',
        ),
        (
            "hyperparameters: {n: {type: int, minval: 0.5, maxval: 3}}",
            'exp.yaml:3:42: error[E201]: "hyperparameters.n.minval" is a number (0.5), expected a whole number',
        ),
        (
            "min_validation_period: {epochs: 0.5}",
            'exp.yaml:3:33: error[E201]: "min_validation_period.epochs" is a number (0.5), expected a whole number',
        ),
        (
            "resources: {shm_size: 1.5}",
            'exp.yaml:3:23: error[E201]: "resources.shm_size": expected a size such as 4GiB, got a number (1.5)',
        ),
    ],
)
def test_a_fraction_for_a_whole_number_is_refused_with_its_position(line: str, expected: str) -> None:
    assert (
        check(SINGLE + line, name="exp.yaml", defaults=DEFAULTS, has_containers=True).render().splitlines()[0]
        == expected
    )


def test_checks_between_fields_use_the_converted_whole_number() -> None:
    checked = check(SINGLE + "resources: {slots_per_trial: 4.0, max_slots: 2.0}", defaults=DEFAULTS)
    assert [diagnostic.message for diagnostic in checked.diagnostics] == [
        "a trial needs 4 slots but max_slots allows at most 2"
    ]


def test_changes_and_commands_accept_whole_numbers_with_a_point() -> None:
    assert check_changes({"resources": {"max_slots": 4.0}}) == []
    checked = check_command({"entrypoint": ["ls"], "resources": {"slots": 2.0}})
    assert checked.config is not None
    assert json.dumps(checked.config["resources"]["slots"]) == "2"
