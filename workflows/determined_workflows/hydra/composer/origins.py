"""Where each value of a composition comes from: a line of a file, a schema, or an override."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined_workflows.hydra.composer import secrets, yaml_places

Key = tuple[str, ...]
LAUNCHER: Key = ("hydra", "launcher")
CONFIGURATION, OVERRIDE = "configuration", "override"


class Origins:
    """Watches a loader of Hydra, and knows where the values of its last composition come from.

    Hydra says which configurations it merged, but not which of them gave a value; composing once more to find out would
    double the cost.
    """

    def __init__(self, loader: Any) -> None:  # noqa: ANN401  # Hydra's ConfigLoaderImpl
        from hydra._internal.config_loader_impl import ConfigLoaderImpl

        self._by_key: dict[Key, tuple[_Source, str]] = {}
        self._overrides: list[Any] = []
        self._launcher_keys: set[str] = set()
        compose, load = loader._compose_config_from_defaults_list, loader._load_single_config  # noqa: SLF001  # Hydra offers no other way
        apply: Any = ConfigLoaderImpl._apply_overrides_to_config  # noqa: SLF001

        def watched_compose(**arguments: Any) -> Any:  # noqa: ANN401  # Hydra's
            self._by_key, self._launcher_keys = {}, set()
            return compose(**arguments)

        def watched_load(default: Any, repo: Any) -> Any:  # noqa: ANN401  # Hydra's
            result = load(default=default, repo=repo)
            self._add(default, result)
            return result

        def watched_apply(overrides: list[Any], config: Any) -> None:  # noqa: ANN401  # Hydra's
            self._overrides = list(overrides)
            apply(overrides, config)

        loader._compose_config_from_defaults_list = watched_compose  # noqa: SLF001
        loader._load_single_config = watched_load  # noqa: SLF001
        setattr(ConfigLoaderImpl, apply.__name__, staticmethod(watched_apply))

    def by_key(self) -> dict[Key, str]:
        """Returns the origin of each value of the last composition; a list is one value."""
        origins = {path: source.origin(path, schema) for path, (source, schema) in self._by_key.items()}
        for override in self._overrides:
            if override.is_delete():
                continue
            key = tuple(override.key_or_group.split("."))
            for path in [each for each in origins if each[: len(key)] == key]:
                del origins[path]
            origins[key] = f"override {secrets.without_in_override(override.input_line)}"
        return origins

    def launcher_keys(self) -> dict[str, str]:
        """Returns the keys of ``hydra.launcher`` that the last composition sets beyond the launcher's own defaults.

        The value says what sets a key: ``CONFIGURATION`` or ``OVERRIDE``; an override may delete it.
        """
        keys = dict.fromkeys(self._launcher_keys, CONFIGURATION)
        for override in self._overrides:
            key = tuple(override.key_or_group.split("."))
            if key == LAUNCHER and isinstance(override.value(), dict):
                keys |= {str(name): OVERRIDE for name in override.value()}
            elif key[:2] == LAUNCHER and len(key) > len(LAUNCHER):
                keys[key[2]] = OVERRIDE
        return keys

    def _add(self, default: Any, result: Any) -> None:  # noqa: ANN401  # Hydra's
        package = default.package if default.package is not None else result.header["package"]
        above = tuple(filter(None, (package or "").split(".")))
        is_of_application, is_of_project = above[:1] != ("hydra",), not _is_of_plugin(result)
        source = _Source(default.config_path, file_of(result, default.config_path), len(above))
        for path, schema in _leaves(result.config, ()) if is_of_application or is_of_project else ():
            if is_of_application:
                self._by_key[path] = source, schema
            if is_of_project and path[:2] == LAUNCHER and len(path) > len(LAUNCHER):
                self._launcher_keys.add(path[2])


@dataclass(frozen=True)
class _Source:
    """One configuration of the defaults list; ``depth`` is the number of names in its package."""

    name: str
    file: str | None
    depth: int

    def origin(self, path: Key, schema: str) -> str:
        if self.file is None:
            return f"schema {schema}" if schema else f"stored config {self.name}"
        place = yaml_places.find(self.file, path[self.depth :])
        return f"{_shown(self.file)}:{place[0]}" if place else _shown(self.file)


def file_of(result: Any, config_path: str) -> str | None:  # noqa: ANN401  # Hydra's ConfigResult
    """Returns the file that a configuration was read from, or None if it is stored by the program."""
    scheme, _, folder = str(result.path).partition("://")
    if scheme != "file":
        return None
    name = config_path if config_path.endswith((".yaml", ".yml")) else f"{config_path}.yaml"
    return str(Path(folder, name))


def _is_of_plugin(result: Any) -> bool:  # noqa: ANN401  # Hydra's ConfigResult
    """Returns True for a configuration of Hydra or of a plug-in, which names itself when it registers a default.

    A configuration that the program itself stores has the name of the store, ``schema``.
    """
    is_stored = str(result.path).startswith("structured:")
    return result.provider == "hydra" or (is_stored and result.provider != "schema")


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
