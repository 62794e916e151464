"""Reads the settings file of a program (``master.yaml``, ``agent.yaml``); names each wrong setting with its line."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined.config import yaml_source
from determined.config.findings import nearest
from determined.config.yaml_source import Place
from determined.errors import ConfigError


@dataclass(frozen=True)
class SettingsFile:
    """The settings of a file. ``values`` are unchecked; ``problems`` names, with their lines, the unknown ones."""

    path: Path
    values: dict[str, Any]
    places: dict[str, Place]
    problems: list[str]

    def where(self, name: str) -> str:
        """Returns the position of a setting's value as ``FILE:LINE:COLUMN``."""
        place = self.places[name]
        return f"{self.path}:{place.value_line}:{place.value_column}"


def read(path: Path, known: Collection[str]) -> SettingsFile:
    """Reads a settings file. Dashes in names count as underscores.

    Args:
        path: the YAML file; an empty one has no settings.
        known: names of the settings.

    Raises:
        ConfigError: the file cannot be read, or is no YAML mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not any(line.split("#")[0].strip() for line in text.splitlines()):
        return SettingsFile(path, {}, {}, [])
    document = yaml_source.read(text)
    problems = [f"{path}:{each.line}:{each.column}: {each.message}" for each in document.problems]
    if not document.is_readable:
        raise ConfigError("; ".join(problems))
    values: dict[str, Any] = {}
    places: dict[str, Place] = {}
    for key, value in document.data.items():
        name, place = str(key).replace("-", "_"), document.places[(key,)]
        if name in known:
            values[name], places[name] = value, place
            continue
        near = nearest(name, known)
        hint = f'; did you mean "{near}"?' if near else ""
        problems.append(f'{path}:{place.line}:{place.column}: unknown setting "{key}"{hint}')
    return SettingsFile(path, values, places, problems)
