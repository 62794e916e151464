"""Hyperparameters with the names of a hyperparameter's own fields."""

import random

import pytest

from determined.config import check
from determined.searcher.sampling import grid_point, grid_size, listed_point, sample

SMALL = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\n"
DEFAULTS = [{"checkpoint_storage": {"type": "shared_fs", "host_path": "/c"}}]
NAMES = ("type", "val", "vals", "minval", "maxval", "count", "base", "const", "int")


def hyperparameters(text: str) -> dict[str, object]:
    checked = check(SMALL + f"hyperparameters: {text}", defaults=DEFAULTS, name="exp.yaml")
    assert checked.config is not None, checked.render()
    return checked.config.hyperparameters


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ["adam", "const", "5", "[1, 2]"])
def test_a_hyperparameter_may_have_a_reserved_name(name: str, value: str) -> None:
    space = hyperparameters(f"{{{name}: {value}, lr: {{type: double, minval: 0, maxval: 1, count: 3}}}}")
    point = sample(space, random.Random(0))
    assert point[name] == {"5": 5, "[1, 2]": [1, 2]}.get(value, value)
    assert 0 <= point["lr"] < 1
    assert grid_size(space) == 3
    assert grid_point(space, 1)[name] == point[name]
    assert listed_point(space, {"lr": 0.5}) == {name: point[name], "lr": 0.5}


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_hyperparameter_of_a_group_may_have_a_reserved_name(name: str) -> None:
    assert sample(hyperparameters(f"{{g: {{{name}: 5}}}}"), random.Random(0)) == {"g": {name: 5}}


def test_a_plain_type_in_a_group_is_refused_and_the_suggested_form_is_accepted() -> None:
    checked = check(SMALL + "hyperparameters: {optimizer: {type: adam, lr: 0.1}}", defaults=DEFAULTS, name="exp.yaml")
    assert checked.render() == (
        'exp.yaml:3:37: error[E204]: unknown hyperparameter type "adam"\n'
        "  hyperparameters: {optimizer: {type: adam, lr: 0.1}}\n"
        "                                      ^\n"
        "help: one of const, int, double, log, categorical; "
        'a hyperparameter of a group that has the name "type" is written as {type: const, val: …}'
    )
    space = hyperparameters("{optimizer: {type: {type: const, val: adam}, lr: 0.1}}")
    assert sample(space, random.Random(0)) == {"optimizer": {"lr": 0.1, "type": "adam"}}


def test_a_hyperparameter_named_type_overrides_that_of_the_defaults() -> None:
    defaults = [{"hyperparameters": {"type": "sgd", "lr": 1}}, *DEFAULTS]
    checked = check(SMALL + "hyperparameters: {type: adam, n: {type: int, minval: 1, maxval: 2}}", defaults=defaults)
    assert checked.config is not None, checked.render()
    point = sample(checked.config.hyperparameters, random.Random(0))
    assert {**point, "n": 0} == {"type": "adam", "lr": 1, "n": 0}


def test_a_constant_of_a_list_search_without_value_is_refused() -> None:
    text = "entrypoint: a.py\nsearcher: {name: list, metric: loss, trials: [{lr: {type: const}}]}"
    diagnostics = check(text, defaults=DEFAULTS).diagnostics
    assert [diagnostic.code for diagnostic in diagnostics] == ["E313"]
