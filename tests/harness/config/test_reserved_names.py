"""Hyperparameters that have the names of a hyperparameter's own fields."""

import random

import pytest

from determined.config import check
from determined.searcher.sampling import grid_point, grid_size, listed_point, sample

SMALL = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\n"
BELOW = [{"checkpoint_storage": {"type": "shared_fs", "host_path": "/c"}}]
NAMES = ("type", "val", "vals", "minval", "maxval", "count", "base", "const", "int")


def hyperparameters(text: str) -> dict[str, object]:
    checked = check(SMALL + f"hyperparameters: {text}", defaults=BELOW, name="exp.yaml")
    assert checked.config is not None, checked.render()
    return checked.config.hyperparameters


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ["adam", "const", "5", "[1, 2]"])
def test_a_reserved_word_names_a_plain_value(name: str, value: str) -> None:
    found = hyperparameters(f"{{{name}: {value}, lr: {{type: double, minval: 0, maxval: 1, count: 3}}}}")
    point = sample(found, random.Random(0))
    assert point[name] == {"5": 5, "[1, 2]": [1, 2]}.get(value, value)
    assert 0 <= point["lr"] < 1
    assert grid_size(found) == 3
    assert grid_point(found, 1)[name] == point[name]
    assert listed_point(found, {"lr": 0.5}) == {name: point[name], "lr": 0.5}


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_reserved_word_names_a_plain_value_of_a_group(name: str) -> None:
    assert sample(hyperparameters(f"{{g: {{{name}: 5}}}}"), random.Random(0)) == {"g": {name: 5}}


def test_type_in_a_group_is_refused_and_the_way_to_write_it_works() -> None:
    found = check(SMALL + "hyperparameters: {optimizer: {type: adam, lr: 0.1}}", defaults=BELOW, name="exp.yaml")
    assert found.render() == (
        'exp.yaml:3:37: error[E204]: unknown hyperparameter type "adam"\n'
        "  hyperparameters: {optimizer: {type: adam, lr: 0.1}}\n"
        "                                      ^\n"
        "help: one of const, int, double, log, categorical; "
        'a hyperparameter of a group that has the name "type" is written as {type: const, val: …}'
    )
    written = hyperparameters("{optimizer: {type: {type: const, val: adam}, lr: 0.1}}")
    assert sample(written, random.Random(0)) == {"optimizer": {"lr": 0.1, "type": "adam"}}


def test_a_layer_below_keeps_a_hyperparameter_with_the_name_type() -> None:
    below = [{"hyperparameters": {"type": "sgd", "lr": 1}}, *BELOW]
    checked = check(SMALL + "hyperparameters: {type: adam, n: {type: int, minval: 1, maxval: 2}}", defaults=below)
    assert checked.config is not None, checked.render()
    point = sample(checked.config.hyperparameters, random.Random(0))
    assert {**point, "n": 0} == {"type": "adam", "lr": 1, "n": 0}


def test_a_constant_of_a_list_search_without_value_is_refused() -> None:
    text = "entrypoint: a.py\nsearcher: {name: list, metric: loss, trials: [{lr: {type: const}}]}"
    found = check(text, defaults=BELOW).diagnostics
    assert [each.code for each in found] == ["E313"]
