"""``--config key.path=value``: changes to a configuration from the command line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from determined.config import diagnostics as rendering
from determined.config import yaml_source
from determined.config.diagnostics import Diagnostic, Path, render_path
from determined.config.override_values import understood
from determined.config.yaml_nodes import Problem
from determined.config.yaml_source import Source
from determined.config.yaml_syntax import reason
from determined.errors import ConfigError


@dataclass(frozen=True)
class Overridden:
    """A configuration that was changed by ``--config``.

    Attributes:
        text: the changed configuration, without comments and layout.
        original: the document before the changes.
        changes: what was given, by the path of the value that it sets.
    """

    text: str
    original: Source = field(repr=False)
    changes: dict[Path, str]

    def render(self, name: str, diagnostics: Sequence[Diagnostic]) -> str:
        """Returns diagnostics of the changed text as text for people: each names the line of the file, or the change,
        that it is about."""
        if not self.changes:
            return rendering.render(name, self.text.split("\n"), diagnostics)
        changed = yaml_source.read(self.text)
        return "\n".join(self._one(name, each, changed) for each in diagnostics)

    def _one(self, name: str, diagnostic: Diagnostic, changed: Source) -> str:
        path, is_value = _path_at(changed, diagnostic)
        given = None if path is None else self._change_of(path)
        if given is not None:
            return rendering.without_place(f'--config "{given}"', diagnostic)
        place = None if path is None else self.original.places.get(path)
        if place is None:
            return rendering.without_place(name, diagnostic)
        line, column = (place.value_line, place.value_column) if is_value else (place.line, place.column)
        return rendering.render(name, self.original.lines, [replace(diagnostic, line=line, column=column)])

    def _change_of(self, path: Path) -> str | None:
        """Returns the change that a path is part of, or that created it."""
        for changed, text in reversed(self.changes.items()):
            if path[: len(changed)] == changed or (path == changed[: len(path)] and path not in self.original.places):
                return text
        return None


def _path_at(source: Source, diagnostic: Diagnostic) -> tuple[Path | None, bool]:
    """Returns the path of the key or value at the position of a diagnostic, and whether it is about the value."""
    at = (diagnostic.line, diagnostic.column)
    near = [
        (path, (place.line, place.column) != at)
        for path, place in source.places.items()
        if at in ((place.line, place.column), (place.value_line, place.value_column))
    ]
    exact = [(path, is_value) for path, is_value in near if render_path(path) == diagnostic.path]
    return next(iter(exact or near), (None, False))


def override(text: str, changes: Iterable[str]) -> Overridden:
    """Returns the changed configuration. A text that is no configuration stays as it is: its check says why.

    >>> print(override("resources: {slots_per_trial: 1}", ["resources.slots_per_trial=4", "labels=a,b"]).text, end="")
    resources:
      slots_per_trial: 4
    labels:
    - a
    - b
    """
    document, changes = yaml_source.read(text), list(changes)
    if document.problems or not changes:
        return Overridden(text, document, {})
    data, given = document.data, {}
    for change in changes:
        given[_apply(data, change)] = change
    return Overridden(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), document, given)


def _apply(data: dict[str, Any], change: str) -> Path:
    path, found, text = change.partition("=")
    keys = path.strip().split(".")
    if not found or not all(keys):
        raise ConfigError(f'--config "{change}" is not of the form key.path=value')
    try:
        value = understood(keys, text)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f'--config "{change}": the value is not YAML: {reason(error)}') from None
    except Problem as problem:
        raise ConfigError(f'--config "{change}": {problem.message}') from None
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f'--config "{change}": the value is not YAML') from None
    if keys == ["bind_mounts"] and not isinstance(value, list):
        value = [value]
    at = data
    for key in keys[:-1]:
        below = at.get(key)
        if not isinstance(below, dict):
            below = at[key] = {}
        at = below
    at[keys[-1]] = value
    return tuple(keys)
