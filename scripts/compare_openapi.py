"""Compares two OpenAPI documents: paths, methods, parameters, statuses, request bodies and fields of answers.

``python scripts/compare_openapi.py OLD.json NEW.json [--allow-added]`` prints each difference in a line of its own and
exits with 1 if there is any. Operation ids, descriptions and titles are not compared, and a request body may be added.
``--allow-added`` also accepts what only the new document has: operations, optional parameters, fields of answers.
``--allow-limits`` also accepts other limits of a value, such as its largest number or its pattern.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Node = Mapping[str, Any]
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
_WORDS = ("title", "description", "example", "examples", "operationId", "summary")
LIMITS = ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "minLength", "maxLength", "pattern", "format")
MAX_DEPTH = 12
"""A schema that refers to itself is unfolded this often."""


@dataclass(frozen=True)
class Difference:
    """One line of the report. ``is_added`` is true for what only the new document has and no client can miss."""

    where: str
    text: str
    is_added: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def compare(old: Node, new: Node) -> list[Difference]:
    """All differences, in the order of paths."""
    before, after = dict(_operations(old)), dict(_operations(new))
    found = [Difference(name, "operation is gone") for name in before if name not in after]
    found += [Difference(name, "operation is new", is_added=True) for name in after if name not in before]
    for name in before.keys() & after.keys():
        found += _parameters(name, _fields_of_parameters(old, before[name]), _fields_of_parameters(new, after[name]))
        found += _body(name, old, before[name], new, after[name])
        found += _answers(name, old, before[name], new, after[name])
    return sorted(found, key=str)


def _operations(document: Node) -> Iterator[tuple[str, Node]]:
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield f"{method.upper()} {path}", methods[method]


def _fields_of_parameters(document: Node, operation: Node) -> dict[str, tuple[bool, str]]:
    return {
        f"{each['in']} {each['name']}": (bool(each.get("required")), _shape(document, each.get("schema", {})))
        for each in operation.get("parameters", ())
    }


def _parameters(
    name: str, old: Mapping[str, tuple[bool, str]], new: Mapping[str, tuple[bool, str]]
) -> Iterator[Difference]:
    for key in old.keys() | new.keys():
        where = f"{name}: parameter {key}"
        if key not in new:
            yield Difference(where, "is gone")
        elif key not in old:
            is_required = new[key][0]
            yield Difference(where, f"is new{' and required' if is_required else ''}", is_added=not is_required)
        elif old[key] != new[key]:
            yield Difference(where, f"was {_said(old[key])}, is {_said(new[key])}")


def _said(parameter: tuple[bool, str]) -> str:
    return f"{'required ' if parameter[0] else ''}{parameter[1]}"


def _body(name: str, old: Node, before: Node, new: Node, after: Node) -> Iterator[Difference]:
    was, now = _content(before.get("requestBody", {})), _content(after.get("requestBody", {}))
    if not was:  # a body that is now described was read before, too
        return
    yield from _fields(f"{name}: body", _flat(old, was), _flat(new, now), are_sent=True)


def _answers(name: str, old: Node, before: Node, new: Node, after: Node) -> Iterator[Difference]:
    was, now = before.get("responses", {}), after.get("responses", {})
    for status in was.keys() | now.keys():
        where = f"{name}: {status}"
        if status not in now:
            yield Difference(where, "status is gone")
        elif status not in was:
            yield Difference(where, "status is new", is_added=True)
        else:
            yield from _fields(where, _flat(old, _content(was[status])), _flat(new, _content(now[status])))


def _fields(
    where: str, old: Mapping[str, str], new: Mapping[str, str], *, are_sent: bool = False
) -> Iterator[Difference]:
    for field in old.keys() | new.keys():
        if field not in new:
            yield Difference(where, f"field {field} is gone")
        elif field not in old:
            is_required = are_sent and new[field].startswith("required ")
            yield Difference(where, f"field {field} is new ({new[field]})", is_added=not is_required)
        elif old[field] != new[field]:
            yield Difference(where, f"field {field} was {old[field]}, is {new[field]}")


def _content(holder: Node) -> Node:
    """The schema of the first media type."""
    kinds: Mapping[str, Node] = holder.get("content", {})
    return next((kind.get("schema", {}) for kind in kinds.values()), {})


def _flat(document: Node, schema: Node, at: str = "", depth: int = 0) -> dict[str, str]:
    """The shape of each field, by its path: ``experiment.labels[]`` → ``string``."""
    schema = _resolved(document, schema)
    if depth > MAX_DEPTH:
        return {at: "…"}
    found: dict[str, str] = {}
    for key, field in schema.get("properties", {}).items():
        inner = f"{at}.{key}" if at else key
        required = "required " if key in schema.get("required", ()) else ""
        found[inner] = required + _shape(document, field)
        found.update(_flat(document, field, inner, depth + 1))
    if "items" in schema:
        found[f"{at}[]"] = _shape(document, schema["items"])
        found.update(_flat(document, schema["items"], f"{at}[]", depth + 1))
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        found.update(_flat(document, choice, at, depth + 1))
    return found


def _shape(document: Node, schema: Node) -> str:
    """Type, limits and values of one field, without what lies below it."""
    schema = _resolved(document, schema)
    choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    if choices:
        return " or ".join(sorted({_shape(document, each) for each in choices}))
    below = ("properties", "items", "required", "$defs", "additionalProperties")
    rest = {key: value for key, value in schema.items() if key not in (*_WORDS, *below, "type")}
    limits = " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(rest.items()))
    return f"{schema.get('type', 'any')} {limits}".strip()


def _resolved(document: Node, schema: Node) -> Node:
    while "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def _without_limits(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {
            key: _without_limits(value)
            for key, value in node.items()
            if key not in LIMITS or isinstance(value, Mapping)
        }
    return [_without_limits(each) for each in node] if isinstance(node, list) else node


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--allow-added", action="store_true", help="accept what only the new document has")
    parser.add_argument("--allow-limits", action="store_true", help="accept other limits of values")
    options = parser.parse_args()
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (options.old, options.new))
    if options.allow_limits:
        old, new = _without_limits(old), _without_limits(new)
    found = [each for each in compare(old, new) if not (options.allow_added and each.is_added)]
    for each in found:
        print(each)
    print(f"OpenAPI: {len(found)} differences", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
