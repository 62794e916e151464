"""``--config key.path=value``: changes to a configuration from the command line."""

from collections.abc import Iterable
from typing import Any

import yaml

from determined.config import yaml_source
from determined.config.yaml_nodes import Problem
from determined.errors import ConfigError


def override(text: str, changes: Iterable[str]) -> str:
    """Returns the changed configuration as new text; comments and layout are lost.

    >>> print(override("resources: {slots_per_trial: 1}", ["resources.slots_per_trial=4", "labels=a,b"]), end="")
    resources:
      slots_per_trial: 4
    labels:
    - a
    - b
    """
    document = yaml_source.read(text)
    if document.problems:
        raise ConfigError(f"line {document.problems[0].line}: {document.problems[0].message}")
    data = document.data
    for change in changes:
        _apply(data, change)
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def _apply(data: dict[str, Any], change: str) -> None:
    path, found, text = change.partition("=")
    keys = path.strip().split(".")
    if not found or not all(keys):
        raise ConfigError(f'--config "{change}" is not of the form key.path=value')
    value = _value(change, text)
    if keys == ["bind_mounts"] and not isinstance(value, list):
        value = [value]
    at = data
    for key in keys[:-1]:
        below = at.get(key)
        if not isinstance(below, dict):
            below = at[key] = {}
        at = below
    at[keys[-1]] = value


def _value(change: str, text: str) -> object:
    try:
        if "," in text and not text.lstrip().startswith(("[", "{")):
            return [yaml_source.read_value(part) for part in text.split(",")]
        return yaml_source.read_value(text)
    except (Problem, yaml.YAMLError, ValueError) as error:
        raise ConfigError(f'--config "{change}": the value is not YAML: {error}') from None
