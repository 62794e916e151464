"""Shapes of JSON answers: their keys and the kinds of their values.

A kind is ``null``, ``zero``, ``number``, ``empty``, ``text``, ``time``, ``digits`` (a whole number as a text),
``bool``, ``object``, or the name of an enum's value. The shape of an object is an object. The shape of a list is a list
of at most one shape: the shape that its items have in common, in which a key that some items lack is ``absent``.
Several kinds are joined by ``|``.
"""

import re
from collections.abc import Iterator
from typing import Any

OPAQUE = {"config", "experimentConfig", "originalConfig", "hparams", "hyperparameters", "avgMetrics", "avg_metrics"}
OPAQUE |= {"validation_metrics", "resources", "summaryMetrics", "values", "resourceManagerMetadata"}
"""Data of users and configurations. Only their presence is compared."""
MEASURED = {"duration", "wallClockTime", "seconds"}
"""Durations. They may be zero in a quick test."""
RECORDED_ITEMS = 2
"""Maximum number of items of a list in the recording."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ENUM = re.compile(r"[A-Z]+(_[A-Z0-9]+)+")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d.*")
_CUT = re.compile(r"\.\.\. \d+ more")
_ROOTS = {
    "experiment": "experiment",
    "experiments": "experiment",
    "trial": "trial",
    "trials": "trial",
    "checkpoint": "checkpoint",
    "checkpoints": "checkpoint",
    "command": "command",
    "commands": "command",
    "shell": "shell",
    "shells": "shell",
    "agent": "agent",
    "agents": "agent",
    "slot": "slot",
    "slots": "slot",
    "containers": "container",
    "container": "container",
    "user": "user",
    "users": "user",
    "job": "job",
    "jobs": "job",
    "full": "job",
    "task": "task",
    "pagination": "pagination",
    "error": "error",
}
"""Objects that many calls return. A difference in one is reported once."""


def shape_of(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        if key in OPAQUE:
            return "object" if value else "empty object"
        shape: dict[str, Any] = {}
        for name, item in value.items():
            kind = "*" if _UUID.search(name) else name
            inner = shape_of(item, name)
            shape[kind] = joined(shape[kind], inner) if kind in shape else inner
        return shape
    if isinstance(value, list):
        items = [shape_of(item, key) for item in value[:RECORDED_ITEMS] if not _is_cut(item)]
        common: Any = items[0] if items else None
        for item in items[1:]:
            common = joined(common, item)
        return [common] if items else []
    return _kind(value, key)


def _is_cut(item: Any) -> bool:
    return isinstance(item, str) and bool(_CUT.fullmatch(item))


def _kind(value: Any, key: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number" if value or key in MEASURED else "zero"
    if value == "":
        return "empty"
    if _ENUM.fullmatch(value):
        return str(value)
    if _TIME.fullmatch(value):
        return "time"
    return "digits" if value.isdecimal() else "text"


def joined(one: Any, other: Any) -> Any:
    """Returns the common shape of two items of a list."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {
            key: joined(one[key], other[key]) if key in one and key in other else _maybe(one.get(key, other.get(key)))
            for key in [*one, *(key for key in other if key not in one)]
        }
    if isinstance(one, list) and isinstance(other, list):
        return [joined(one[0], other[0])] if one and other else one or other
    if isinstance(one, str) and isinstance(other, str):
        return "|".join(sorted({*one.split("|"), *other.split("|")}))
    return next(shape for shape in (one, other) if not isinstance(shape, str))


def _maybe(shape: Any) -> Any:
    return joined(shape, "absent") if isinstance(shape, str) else shape


def differences(at: str, theirs: Any, ours: Any) -> Iterator[str]:
    """Yields ``WHERE: THEIRS → OURS`` for each place where our shape has a kind or a key that their shape does not
    have."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            root = None if isinstance(theirs.get(key, ours.get(key)), str) else _ROOTS.get(key)
            inner = root if root and at != "error" else f"{at}.{key}"
            if key not in ours:
                yield f"{inner}: {_name(theirs[key])} → absent"
            elif key not in theirs:
                yield f"{inner}: absent → {_name(ours[key])}"
            else:
                yield from differences(inner, theirs[key], ours[key])
    elif isinstance(theirs, list) and isinstance(ours, list):
        if theirs and ours:
            yield from differences(at, theirs[0], ours[0])
        elif theirs or ours:
            yield f"{at}: {'items' if theirs else 'no items'} → {'items' if ours else 'no items'}"
    elif isinstance(theirs, str) and isinstance(ours, str):
        if not {*ours.split("|")} <= {*theirs.split("|")}:
            yield f"{at}: {theirs} → {ours}"
    else:
        yield f"{at}: {_name(theirs)} → {_name(ours)}"


def _name(shape: Any) -> str:
    if isinstance(shape, dict):
        return "object"
    return shape if isinstance(shape, str) else "list"


def template_of(call: str) -> str:
    """Returns a call with ``N`` in place of ids: ``GET /trials/9999/logs`` and ``GET /trials/{trial}/logs`` become
    equal."""
    method, path = call.split()
    parts = ["N" if part.isdecimal() or part[:1] == "{" else part for part in path.removeprefix("/api/v1").split("/")]
    return f"{method} {'/'.join(parts)}"
