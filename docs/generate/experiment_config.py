"""Reference of the experiment configuration: every key with its type, default and dialect."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from determined.config import hyperparameters, searcher, storage
from determined.config.experiment import DEAD_FIELDS, ExperimentConfig
from generate.markdown import cell, code, table
from generate.settings_pages import type_name

KEYS: dict[str, list[Any]] = yaml.safe_load(Path(__file__).with_name("config_keys.yaml").read_text(encoding="utf-8"))
_APART = ("searcher", "checkpoint_storage", "hyperparameters")
_LEAVES = (
    *("environment.image", "environment.environment_variables", "environment.proxy_ports", "environment.registry_auth"),
    *("resources.devices", "min_validation_period", "min_checkpoint_period", "integrations.pachyderm"),
)

HEAD = """# Experiment configuration

A YAML file. `det experiment create` checks it before anything is sent, with the same code as the master, and names
each mistake with its line ([all codes](error-codes.md)). `null` means "not set". Unknown keys are errors, except in
`data` and `hyperparameters`. *Since* names the dialect that introduced a key: Determined of 2022 (0.18, 0.19), of 2024
(up to 0.38), or Detent. Lengths are one of `{batches: N}`, `{records: N}` and `{epochs: N}`.

```yaml
name: digits
entrypoint: python3 train.py
searcher: {name: single, metric: validation_loss, max_length: {batches: 1000}}
```

"""


def page() -> str:
    """Returns the whole page. Raises ValueError for a key without an explanation, and for one that does not exist."""
    found = dict(paths(ExperimentConfig))
    if missing := sorted(found.keys() - KEYS.keys()):
        raise ValueError(f"config_keys.yaml explains nothing of {', '.join(missing)}")
    if superfluous := sorted(KEYS.keys() - found.keys()):
        raise ValueError(f"config_keys.yaml explains {', '.join(superfluous)}, which no configuration has")
    parts = [HEAD, "## All keys\n", table(("key", "type", "default", "since", "meaning"), map(_row, found.items()))]
    parts += ["\n## Hyperparameters\n", _models(hyperparameters.TYPES, "type")]
    parts += ["\n## Searchers\n", _models(searcher.SEARCHERS, "name")]
    parts += ["\n## Checkpoint storages\n", _models(storage.STORAGES, "type")]
    dead = ", ".join(map(code, DEAD_FIELDS))
    parts += [f"\n## Keys without effect\n\nOld files may have {dead}; a warning says so.\n"]
    return "\n".join(parts)


def paths(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yields the dotted path of every key and its field; keys of list items have the path of the list before them."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        inner = None if path in _APART or path in _LEAVES else _model_in(field.annotation)
        is_section = inner is not None and field.annotation is inner
        if not is_section:
            yield path, field
        if path == "searcher":
            yield from _searcher()
        elif inner is not None:
            yield from paths(inner, f"{path}.")


def _searcher() -> Iterator[tuple[str, FieldInfo]]:
    seen: dict[str, FieldInfo] = {}
    for model in searcher.SEARCHERS.values():
        for name, field in model.model_fields.items():
            seen.setdefault(f"searcher.{name}", field)
    yield from seen.items()


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401  # any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _row(item: tuple[str, FieldInfo]) -> tuple[str, ...]:
    path, field = item
    since, text = KEYS[path]
    return code(path), _kind(path, field), _default(path, field), str(since), cell(text)


def _kind(path: str, field: FieldInfo) -> str:
    if path in _APART or path in ("environment.image", "environment.environment_variables"):
        return "see below" if path in _APART else "text, list or mapping by device"
    if path.endswith("_period") or path == "searcher.max_length":
        return "length"
    if path == "entrypoint":
        return "text or list of texts"
    return type_name(field.annotation)


def _default(path: str, field: FieldInfo) -> str:
    if path.endswith("_period"):
        return "0"
    if path == "searcher.name":
        return "required"
    if field.is_required():
        return "" if path in ("name", "reproducibility.experiment_seed") else "required"
    value = field.get_default(call_default_factory=True)
    if value in (None, "", [], {}) or isinstance(value, BaseModel | list):
        return "" if path != "log_policies" else "two policies"
    return code(str(value).lower() if isinstance(value, bool) else value)


def _models(models: dict[str, type[Any]], tag: str) -> str:
    rows = []
    for name, model in models.items():
        keys = [
            code(key) + ("" if not field.is_required() else " (required)")
            for key, field in model.model_fields.items()
            if key != tag
        ]
        rows.append((code(name), cell(model.__doc__ or ""), ", ".join(keys)))
    return table((code(tag), "meaning", "keys"), rows)
