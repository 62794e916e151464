"""Reference of the settings of master and agent, from their models."""

import ast
import inspect
from pathlib import PurePath
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from generate.markdown import cell, code, table

MASTER = """# Settings of the master

A setting comes from a flag of `det-master`, an environment variable, or the file that `--config` names; the first of
these wins. Names of variables are `DET_MASTER_` and the name in capitals. Times are in seconds, sizes in bytes.

```yaml
# master.yaml
port: 8080
cluster_name: lab
checkpoint_roots: [/mnt/shared]
```

"""
AGENT = """# Settings of an agent

A setting comes from a flag of `det-agent`, an environment variable, or the file that `--config` names; the first of
these wins. Names of variables are `DET_AGENT_` and the name in capitals. Times are in seconds, sizes in bytes.

"""


def master_page() -> str:
    """Returns the page of the master's settings."""
    from determined_master.settings.pool_settings import PoolSettings, ProviderSettings, SchedulerSettings
    from determined_master.settings.settings import Settings

    parts = (
        ("Each of `resource_pools`", PoolSettings),
        ("`scheduler`, of the master or a pool", SchedulerSettings),
        ("`provider` of a pool", ProviderSettings),
    )
    return MASTER + _table(Settings) + "".join(f"\n## {title}\n\n{_table(model)}" for title, model in parts)


def agent_page() -> str:
    """Returns the page of the agent's settings."""
    from determined_agent.settings import Settings

    return AGENT + _table(Settings)


def undocumented(model: type[BaseModel]) -> list[str]:
    """Returns the fields that no text under their definition explains."""
    texts = attribute_texts(model)
    return [name for name in model.model_fields if not texts.get(name)]


def attribute_texts(model: type[BaseModel]) -> dict[str, str]:
    """Returns the string below the definition of each attribute of a class, which documents it."""
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found


def _table(model: type[BaseModel]) -> str:
    texts = attribute_texts(model)
    rows = [
        (code(name), _kind(field), _default(field), cell(texts.get(name, "")))
        for name, field in model.model_fields.items()
    ]
    return table(("setting", "type", "default", "meaning"), rows)


def _kind(field: FieldInfo) -> str:
    return ", ".join(part for part in (type_name(field.annotation), *map(_bound, field.metadata)) if part)


def type_name(annotation: Any) -> str:  # noqa: ANN401  # any annotation
    """Describes the type of a field in words.

    >>> type_name(int), type_name(str | None)
    ('whole number', 'text')
    """
    if hasattr(annotation, "__metadata__"):
        return type_name(annotation.__origin__)
    words = {int: "whole number", float: "number", bool: "true or false", str: "text", type(None): ""}
    if annotation in words:
        return words[annotation]
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return "path"
    origin = getattr(annotation, "__origin__", None)
    if origin in (dict, list, tuple):
        return "mapping" if origin is dict else f"list of {type_name(get_args(annotation)[0])}s"
    parts = get_args(annotation)
    if parts and all(isinstance(part, str | int) for part in parts):
        return " or ".join(code(part) for part in parts)
    return " or ".join(dict.fromkeys(part for part in map(type_name, parts) if part)) or "mapping"


def _bound(constraint: object) -> str:
    for name, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
        if hasattr(constraint, name):
            return f"{sign} {getattr(constraint, name):,}"
    return ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "–"
    value = field.get_default(call_default_factory=True)
    if value in (None, "", (), {}, []):
        return "–"
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, int) and value >= 1 << 20:
        return next(f"{value >> shift} {unit}" for shift, unit in ((30, "GiB"), (20, "MiB")) if value >= 1 << shift)
    return code(f"{value:.10g}" if isinstance(value, float) else value)
