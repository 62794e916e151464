"""``--config key.path=value`` by the rules that upstream's users know."""

import pytest
import yaml

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
        ("a='x,y'", {"a": ["'x", "y'"]}),
        (
            "bind_mounts={host_path: /a, container_path: b}",
            {"bind_mounts": [{"host_path": "/a", "container_path": "b"}]},
        ),
    ],
)
def test_an_override_changes_the_named_value(change: str, expected: dict[str, object]) -> None:
    if change.startswith("a='"):
        with pytest.raises(ConfigError):
            override("{}", [change])
    else:
        assert yaml.safe_load(override("{}", [change])) == expected


def test_a_scalar_on_the_way_is_replaced() -> None:
    assert yaml.safe_load(override("a: 1\nc: 2", ["a.b=3"])) == {"a": {"b": 3}, "c": 2}


@pytest.mark.parametrize("change", ["a", "=1", "a..b=1", "a=[1", "a=.nan"])
def test_an_invalid_override_is_refused(change: str) -> None:
    with pytest.raises(ConfigError, match="--config"):
        override("{}", [change])
