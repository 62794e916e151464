"""Overrides by ``--config key.path=value``, with the rules of Determined."""

import pytest
import yaml

from determined.config import check
from determined.config.overrides import override
from determined.errors import ConfigError


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("a.b=1", {"a": {"b": 1}}),
        ("a=1e-3", {"a": 0.001}),
        ("a=x,2,true", {"a": ["x", 2, True]}),
        ("a=[x, 2]", {"a": ["x", 2]}),
        ("a={b: 1, c: 2}", {"a": {"b": 1, "c": 2}}),
        ("a=", {"a": None}),
        ("a=x=y", {"a": "x=y"}),
        ("a='x,y'", {"a": "x,y"}),
        (
            "bind_mounts={host_path: /a, container_path: b}",
            {"bind_mounts": [{"host_path": "/a", "container_path": "b"}]},
        ),
    ],
)
def test_an_override_changes_the_named_value(change: str, expected: dict[str, object]) -> None:
    assert yaml.safe_load(override("{}", [change]).text) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("description=first, second", {"description": "first, second"}),
        ("name=1.5", {"name": "1.5"}),
        ("name='quoted'", {"name": "quoted"}),
        ("description=", {"description": None}),
        ("entrypoint=python3 train.py --layers 1,2", {"entrypoint": "python3 train.py --layers 1,2"}),
        ("entrypoint=[python3, train.py]", {"entrypoint": ["python3", "train.py"]}),
        ("labels=a,b", {"labels": ["a", "b"]}),
        ("searcher.metric=a,b", {"searcher": {"metric": "a,b"}}),
        ("checkpoint_storage.host_path=/a,b", {"checkpoint_storage": {"host_path": "/a,b"}}),
        ("hyperparameters.layers=1,2", {"hyperparameters": {"layers": [1, 2]}}),
        ("environment.image=a:1,2", {"environment": {"image": "a:1,2"}}),
        ("environment.image={cpu: a}", {"environment": {"image": {"cpu": "a"}}}),
        (
            "environment.environment_variables=NCCL_IB_HCA=mlx5_0:1,mlx5_3:1,B=2",
            {"environment": {"environment_variables": ["NCCL_IB_HCA=mlx5_0:1,mlx5_3:1", "B=2"]}},
        ),
        (
            "environment.environment_variables.cpu=A=1,2",
            {"environment": {"environment_variables": {"cpu": ["A=1,2"]}}},
        ),
        ("resources.slots_per_trial=2", {"resources": {"slots_per_trial": 2}}),
        ("slurm.sbatch_args=--a=1,--b", {"slurm": {"sbatch_args": ["--a=1", "--b"]}}),
    ],
)
def test_the_field_decides_how_an_override_is_parsed(change: str, expected: dict[str, object]) -> None:
    assert yaml.safe_load(override("{}", [change]).text) == expected


TYPO = """# a comment

name: x

entrypoint: python3 train.py
searcher:
  name: single
  metric: loss

resources:
  slots: 1
"""


def error_lines(text: str, *changes: str) -> list[str]:
    """Returns the rendered errors of a configuration with these overrides."""
    written = override(text, changes)
    checked = check(
        written.text, name="c.yaml", defaults=[{"checkpoint_storage": {"type": "directory", "container_path": "/c"}}]
    )
    return [line for line in written.render("c.yaml", checked.diagnostics).splitlines() if "error[" in line]


def test_an_error_of_the_file_keeps_its_line_with_any_override() -> None:
    (line,) = error_lines(TYPO)
    assert line.startswith("c.yaml:11:3: error[E203]")
    for change in ("name=y", "resources.priority=3", "labels=a,b"):
        assert error_lines(TYPO, change) == [line]


def test_an_error_of_an_override_names_the_override() -> None:
    valid = TYPO.replace("  slots: 1", "  priority: 1")
    for change, text in (
        ("resources.slots_per_trial=many", "expected a whole number"),
        ("resources.slot=2", 'unknown field "slot" in resources'),
        ("optimizations.aggregation_frequency=0", "must be at least 1, is 0"),
        ("searcher.name=singel", 'unknown searcher name "singel"'),
        ("environment.environment_variables==1", "is not NAME=VALUE"),
    ):
        (line,) = error_lines(valid, "name=y", change)
        assert line.startswith(f'--config "{change}": error[')
        assert text in line


def test_a_file_that_is_no_yaml_is_reported_with_its_line() -> None:
    (line,) = error_lines("name: x\n\tentrypoint: y\n", "name=y")
    assert line.startswith("c.yaml:2:")


def test_an_override_below_a_scalar_replaces_the_scalar() -> None:
    assert yaml.safe_load(override("a: 1\nc: 2", ["a.b=3"]).text) == {"a": {"b": 3}, "c": 2}


@pytest.mark.parametrize("change", ["a", "=1", "a..b=1", "a=[1", "a=.nan"])
def test_an_invalid_override_is_refused(change: str) -> None:
    with pytest.raises(ConfigError, match="--config"):
        override("{}", [change])
