"""Origin of each value of an effective configuration: the file, the cluster, or the defaults. Pure."""

from collections.abc import Mapping
from typing import Any

import yaml

from determined.config.diagnostics import Path, render_path
from determined.config.yaml_source import Source, read
from determined_master.api.schemas.experiment_status import ConfigOrigin, EffectiveConfig

EDITED = frozenset(
    {
        ("name",),
        ("description",),
        ("labels",),
        ("resources", "priority"),
        ("resources", "max_slots"),
        ("resources", "weight"),
        ("checkpoint_storage", "save_experiment_best"),
        ("checkpoint_storage", "save_trial_best"),
        ("checkpoint_storage", "save_trial_latest"),
    }
)
"""Fields that users may change later: a value other than the file's then comes from the cluster."""
FILLED = frozenset({("resources", "resource_pool"), ("resources", "priority"), ("reproducibility", "experiment_seed")})
"""Fields that only the cluster sets."""
MAX_SEARCHED_ITEMS = 1000
"""Items of longer lists get the line of their list: locating each item takes quadratic time."""
_MISSING = object()


def effective(config: Mapping[str, Any], submitted: str, defaults: Mapping[str, Any]) -> EffectiveConfig:
    """Returns the effective configuration with origins. ``defaults``: the cluster's defaults."""
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(dict(config), Dumper=dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    file, shown = read(submitted), read(text)
    origins = [
        _origin(path, place.line, _at(config, path), file, defaults)
        for path, place in shown.places.items()
        if not _holds_more(_at(config, path))
    ]
    return EffectiveConfig(text=text, submitted=submitted, origins=sorted(origins, key=lambda each: each.line))


def _origin(path: Path, line: int, value: object, file: Source, defaults: Mapping[str, Any]) -> ConfigOrigin:
    at = _line_in(file, path, value)
    if at is not None and path in EDITED and _at(file.data, path) != value:
        return ConfigOrigin(line=line, path=render_path(path), origin="cluster", at=at)
    if at is not None:
        return ConfigOrigin(line=line, path=render_path(path), origin="file", at=at)
    is_later = (path[:1] == ("labels",) and len(path) > 1) or (path == ("description",) and value is not None)
    is_clusters = path in FILLED or is_later or _at(defaults, path) == value
    return ConfigOrigin(line=line, path=render_path(path), origin="cluster" if is_clusters else "default", at=None)


def _line_in(file: Source, path: Path, value: object) -> int | None:
    """Returns the line of the value or of its shorthand form, or None if the file does not contain it."""
    here: Any = file.data
    for depth, step in enumerate(path):
        if isinstance(here, dict) and step in here and here[step] is not None:
            here = here[step]
        elif isinstance(here, list) and isinstance(step, int):
            # Lists are joined with the defaults' lists, so indices differ.
            if len(here) > MAX_SEARCHED_ITEMS:
                return file.places[path[:depth]].line
            same = [i for i, each in enumerate(here) if _at(each, path[depth + 1 :]) == value]
            if not same:
                return None
            index = step if step in same else same[0]
            return file.places[(*path[:depth], index)].line
        elif isinstance(here, dict | list):
            return None
        else:
            return file.places[path[:depth]].line
    return file.places[path].line


def _at(data: object, path: Path) -> object:
    here = data
    for step in path:
        if isinstance(here, list):
            if not isinstance(step, int) or not 0 <= step < len(here):
                return _MISSING
            here = here[step]
        elif isinstance(here, Mapping) and step in here:
            here = here[step]
        else:
            return _MISSING
    return here


def _holds_more(value: object) -> bool:
    return isinstance(value, dict | list) and bool(value)
