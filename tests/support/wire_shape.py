"""Compares answers with the shapes that the official client's bindings read: ``tests/integration/wire_answers.json``.

A field ``name?`` may be null, but its key must be present: this master writes every key.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "integration"
_BINDINGS: dict[str, Any] = json.loads((TESTS / "wire_answers.json").read_text())
ANSWERS: dict[str, str] = _BINDINGS["answers"]
TYPES: dict[str, dict[str, str]] = _BINDINGS["types"]
ENUMS: dict[str, list[str]] = _BINDINGS["enums"]
"""Every value that the bindings accept. The client raises ValueError for any other."""
ONE_OF = {"v1WorkloadContainer"}
"""Types whose values have exactly one field. The keys of the others are absent."""


def operations() -> list[tuple[str, str, str, str]]:
    """Returns tier, method, path and name of every operation in the bindings."""
    lines = (TESTS / "wire_operations.txt").read_text().splitlines()
    return [tuple(line.split()) for line in lines]  # type: ignore[misc]


def bodies(text: str) -> list[Any]:
    """Returns the answer in a list, or the result of each line of a stream."""
    if not text or text.startswith('{"result"'):
        return [json.loads(line)["result"] for line in text.splitlines()]
    return [json.loads(text)]


def faults(operation: str, body: Any) -> list[str]:
    """Returns the differences between an answer to ``operation`` and the shape that the client expects."""
    spec = ANSWERS.get(operation)
    if spec is None:
        return [] if body == {} else [f"{operation}: {body!r}, not {{}}"]
    if ":" not in spec:
        return list(_of_type(spec, body, operation))
    return list(_of_fields(dict(part.split(":", 1) for part in spec.split(", ")), body, operation))


def _of_fields(fields: dict[str, str], value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: not an object: {value!r}"
        return
    for name, kind in fields.items():
        key = name.removesuffix("?")
        if key not in value:
            yield f"{where}.{key}: no such key"
        elif value[key] is None:
            # Required scalars may be null, required objects and lists may not.
            if not name.endswith("?") and (kind in TYPES or kind[0] in "[{"):
                yield f"{where}.{key}: null"
        else:
            yield from _of_type(kind, value[key], f"{where}.{key}")


def _of_one(fields: dict[str, str], value: Any, where: str) -> Iterator[str]:
    known = {name.removesuffix("?"): kind for name, kind in fields.items()}
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= known.keys():
        yield f"{where}: not exactly one of {', '.join(sorted(known))}: {value!r}"
        return
    ((key, part),) = value.items()
    yield from _of_type(known[key], part, f"{where}.{key}")


def _of_type(kind: str, value: Any, where: str) -> Iterator[str]:
    if kind.startswith("[") and kind.endswith("]"):
        if not isinstance(value, list):
            yield f"{where}: not a list: {value!r}"
            return
        for number, item in enumerate(value):
            yield from _of_type(kind[1:-1], item, f"{where}[{number}]")
    elif kind.startswith("{"):
        if not isinstance(value, dict):
            yield f"{where}: not an object: {value!r}"
        elif kind[1:-1] in TYPES:
            for key, item in value.items():
                yield from _of_type(kind[1:-1], item, f"{where}.{key}")
    elif kind in ONE_OF:
        yield from _of_one(TYPES[kind], value, where)
    elif kind in TYPES:
        yield from _of_fields(TYPES[kind], value, where)
    else:
        yield from _of_scalar(kind, value, where)


def _of_scalar(kind: str, value: Any, where: str) -> Iterator[str]:
    if kind in ENUMS:
        if value not in ENUMS[kind]:
            yield f"{where}: {value!r} is no {kind}"
    elif kind == "bool" and not isinstance(value, bool):
        yield f"{where}: not a boolean: {value!r}"
    elif kind in ("int", "num") and (isinstance(value, bool) or not isinstance(value, int | float)):
        if not (kind == "num" and value in ("NaN", "Infinity", "-Infinity")):
            yield f"{where}: not a number: {value!r}"
    elif kind == "str" and not isinstance(value, str):
        yield f"{where}: not a text: {value!r}"
