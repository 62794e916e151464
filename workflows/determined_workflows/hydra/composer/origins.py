"""Where each value of a composition comes from: a line of a file, a schema, or an override."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined_workflows.hydra.composer import yaml_places

Key = tuple[str, ...]


@dataclass(frozen=True)
class _Source:
    """One configuration of the defaults list."""

    name: str
    config: Any
    file: str | None
    package: Key

    def origin(self, path: Key, schema: str) -> str:
        if self.file is None:
            return f"schema {schema}" if schema else f"stored config {self.name}"
        place = yaml_places.find(self.file, path[len(self.package) :])
        return f"{_shown(self.file)}:{place[0]}" if place else _shown(self.file)


class Origins:
    """The sources of one composition, in the order in which Hydra merges them."""

    def __init__(self, loader: Any, config_name: str | None, overrides: list[str], *, is_sweep: bool = False) -> None:  # noqa: ANN401  # Hydra's
        from hydra._internal.defaults_list import create_defaults_list

        parsed, repository = loader._parse_overrides_and_create_caching_repo(config_name, overrides)  # noqa: SLF001  # Hydra offers no other way
        defaults = create_defaults_list(
            repo=repository,
            config_name=config_name,
            overrides_list=parsed,
            prepend_hydra=True,
            skip_missing=is_sweep,
        )
        self._sources = [_source(loader, default, repository) for default in defaults.defaults]
        self._overrides = [each for each in defaults.config_overrides if not each.is_delete()]

    def by_key(self) -> dict[Key, str]:
        """Returns the origin of each value; a list is one value."""
        found: dict[Key, str] = {}
        for source in self._sources:
            for path, schema in _leaves(source.config, ()):
                if path[0] != "hydra":
                    found[path] = source.origin(path, schema)
        for override in self._overrides:
            key = tuple(override.key_or_group.split("."))
            for path in [each for each in found if each[: len(key)] == key]:
                del found[path]
            found[key] = f"override {override.input_line}"
        return found


def _source(loader: Any, default: Any, repository: Any) -> _Source:  # noqa: ANN401  # Hydra's
    result = loader._load_single_config(default=default, repo=repository)  # noqa: SLF001
    package = default.package if default.package is not None else result.header["package"]
    path = tuple(filter(None, (package or "").split(".")))
    return _Source(default.config_path, result.config, file_of(result, default.config_path), path)


def file_of(result: Any, config_path: str) -> str | None:  # noqa: ANN401  # Hydra's ConfigResult
    """Returns the file that a configuration was read from, or None if it is stored by the program."""
    scheme, _, folder = str(result.path).partition("://")
    if scheme != "file":
        return None
    name = config_path if config_path.endswith((".yaml", ".yml")) else f"{config_path}.yaml"
    return str(Path(folder, name))


def _leaves(config: Any, above: Key) -> Iterator[tuple[Key, str]]:  # noqa: ANN401  # a node of OmegaConf
    from omegaconf import DictConfig

    for key in config if isinstance(config, DictConfig) and not config._is_none() and not config._is_missing() else ():  # noqa: SLF001
        node = config._get_node(key)  # noqa: SLF001  # does not resolve interpolations
        path = (*above, str(key))
        if isinstance(node, DictConfig) and not node._is_interpolation() and len(node):  # noqa: SLF001
            yield from _leaves(node, path)
        else:
            kind = config._metadata.object_type  # noqa: SLF001
            yield path, kind.__name__ if isinstance(kind, type) and kind is not dict else ""


def find(origins: dict[Key, str], path: Key) -> str:
    """Returns the origin of a value: its own, or that of the mapping or interpolation above it."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    return ""


def _shown(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
