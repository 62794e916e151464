"""Errors of users, and their text: what is wrong, where, and which key was meant."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import yaml
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException


class ConfigError(ValueError):
    """The configuration asks for what cannot be trained."""


USER_ERRORS = (ConfigError, HydraException, OmegaConfBaseException)


def explain(error: BaseException, configs: Path) -> str:
    """Returns the text of one of :data:`USER_ERRORS`.

    A key that does not exist is named with the nearest one that does and, where a file of ``configs`` holds it, with
    its line.
    """
    cause = next((each for each in _chain(error) if isinstance(each, OmegaConfBaseException) and each.full_key), None)
    if cause is None:
        return str(error)
    if not isinstance(cause, (ConfigKeyError, ConfigAttributeError)):
        place = _place(str(error), str(cause.full_key), configs)
        return f"{place}{cause.full_key}: {str(cause).partition(chr(10))[0]}"
    key = str(cause.full_key)
    parent, _, name = key.rpartition(".")
    close = difflib.get_close_matches(name, _known_keys(cause), n=1)
    meant = f"; did you mean {parent + '.' if parent else ''}{close[0]}?" if close else ""
    return f"{_place(str(error), key, configs)}there is no key {key}{meant}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _known_keys(cause: OmegaConfBaseException) -> list[str]:
    if is_dataclass(cause.object_type):
        return [field.name for field in fields(cause.object_type)]
    node = cause.parent_node
    return [str(key) for key in node] if node is not None and OmegaConf.is_dict(node) else []


def _place(text: str, key: str, configs: Path) -> str:
    """Returns ``file:line:column: `` of a key in the file that Hydra names, or nothing."""
    named = re.match(r"In '([^']+)'", text)
    path = configs / f"{named[1].removesuffix('.yaml')}.yaml" if named else None
    if path is None or not path.is_file():
        return ""
    node = yaml.compose(path.read_text(encoding="utf-8"))
    mark = None
    for part in key.split("."):
        if not isinstance(node, yaml.MappingNode):
            break
        found = [pair for pair in node.value if pair[0].value == part]
        if not found:
            continue  # a file of a group leaves the group's name out
        mark, node = found[0][0].start_mark, found[0][1]
    return f"{path}:{mark.line + 1}:{mark.column + 1}: " if mark else f"{path}: "
