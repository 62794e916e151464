"""Generates requests from the OpenAPI document with a seed: valid requests in which one or more parts are made hostile."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote, quote_from_bytes

NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    1,
    2,
    7,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    1.5,
    -0.0,
    1e308,
)
STRANGE_NUMBERS: tuple[Any, ...] = (float("nan"), float("inf"), float("-inf"), 10**400)
TEXTS: tuple[str, ...] = (
    *("", " ", "a", "0", "-1", "77", "1.5", "true", "null", "NaN", "1e400", "²", "٣", "１", "\x00", "a\x00b", "\u2028"),
    *("\ud800", "a\udfffb", "🙂", "%", "_", "'", '"', "../..", "a" * 300, "loss", "validation", "x" * 70_000),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"),
    *("2026-01-01", "2026-02-30T00:00:00Z", "id=asc", "loss.mean=desc", "STATE_ACTIVE", "ORDER_BY_DESC", "9" * 30),
    *("{entrypoint: x, name: n, searcher: {name: single, metric: m}}", "[", "a.b", "validation.loss", "state = failed"),
)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [None], [[]], {"": ""}, ["\ud800"], {"\ud800": 1})
WHOLE: tuple[bytes, ...] = (
    *(b"", b"null", b"[]", b"1", b'"x"', b"{", b"\xff\xfe", b"\x00", b"[" * 2000, b'{"a":' * 2000, b'{"a":1e999}'),
    *(b'{"group":"\\ud800"}', b'{"logs":[{}]}', b'{"logs":[null]}', b'{"config":1}', b"9" * 5000),
)
QUERIES: tuple[str, ...] = (
    "%ff=%ff",
    "limit=%00",
    "limit=",
    "a[]=1&a=2",
    "limit=1&limit=2",
    "&&&",
    "=",
    "limit=+1",
    "%",
)
_NAMES = re.compile(r"\{([^}]*)\}")
WAITING = ("follow", "timeoutSeconds", "periodSeconds")
"""Parameters that make a request wait by design. They keep their defaults."""


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    body: bytes | None

    def __str__(self) -> str:
        return f"{self.method} {self.url[:300]} {(self.body or b'')[:300]!r}"


class Generator:
    """Generates requests. ``known``: values of existing objects, by the name of a parameter or field."""

    def __init__(self, document: Mapping[str, Any], known: Mapping[str, Sequence[Any]], seed: int) -> None:
        self._schemas = document.get("components", {}).get("schemas", {})
        self._known = known
        self._random = Random(seed)
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in sorted(document["paths"].items())
            for method, operation in sorted(methods.items())
        ]

    def requests(self, count: int, is_chosen: Callable[[str], bool]) -> Iterator[Request]:
        """Yields ``count`` requests, cycling through the operations with a chosen path."""
        operations = [operation for operation in self._operations if is_chosen(operation[1])]
        for number in range(count):
            yield self._request(*operations[number % len(operations)])

    def reaching(self, path: str) -> str:
        """Returns the URL of an operation with known values as its parameters, or 1 if none is known."""
        for name in _NAMES.findall(path):
            path = path.replace("{" + name + "}", _quoted(self._known[name][0] if name in self._known else "1"))
        return path

    def _request(self, method: str, path: str, operation: Mapping[str, Any]) -> Request:
        query: list[str] = []
        for parameter in operation.get("parameters", ()):
            name, where = parameter["name"], parameter["in"]
            if where == "path":
                value = self._hostile() if self._one_in(4) else self._value(parameter.get("schema", {}), name)
                path = path.replace("{" + name + "}", _quoted(value) or "x")
            elif where == "query" and name not in WAITING and (parameter.get("required") or self._one_in(2)):
                value = self._hostile() if self._one_in(3) else self._value(parameter.get("schema", {}), name)
                for item in value if isinstance(value, list) else [value]:
                    query.append(f"{name}={_quoted(item)}")
        if self._one_in(15):
            query.append(self._random.choice(QUERIES))
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        body = None
        if method not in ("GET", "HEAD"):
            body = self._body(schema if schema is not None else {})
        return Request(method, path + ("?" + "&".join(query) if query else ""), body)

    def _body(self, schema: Mapping[str, Any]) -> bytes:
        if self._one_in(20):
            return self._random.choice(WHOLE)
        value = self._value(schema, "body")
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 4))):
            value = self._spoiled(value)
        return json.dumps(value).encode()

    def _spoiled(self, value: Any) -> Any:
        """Returns the value with one part replaced, dropped or added, at a random depth."""
        if isinstance(value, dict) and value and not self._one_in(6):
            key = self._random.choice(sorted(value))
            if self._one_in(8):
                return {name: item for name, item in value.items() if name != key}
            if self._one_in(12):
                return value | {str(self._hostile()): self._hostile()}
            return value | {key: self._spoiled(value[key])}
        if isinstance(value, list) and value and not self._one_in(4):
            place = self._random.randrange(len(value))
            return [self._spoiled(item) if position == place else item for position, item in enumerate(value)]
        return self._hostile()

    def _hostile(self) -> Any:
        return self._random.choice(self._random.choice((NUMBERS, TEXTS, TEXTS, OTHERS, STRANGE_NUMBERS)))

    def _value(self, schema: Mapping[str, Any], name: str, depth: int = 0) -> Any:
        """Returns a value that the schema allows."""
        if name in self._known and not self._one_in(4):
            value = self._random.choice(self._known[name])
            return [value] if schema.get("type") == "array" and not isinstance(value, list) else value
        if "$ref" in schema:
            return self._value(self._schemas[schema["$ref"].rsplit("/", 1)[1]], name, depth)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._value(self._random.choice(schema[key]), name, depth)
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            return self._object(schema, depth)
        if kind == "array":
            most = 0 if depth > 4 else 2
            return [self._value(schema.get("items", {}), name, depth + 1) for _ in range(self._random.randint(0, most))]
        return self._plain(schema, kind)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        values = {
            name: self._value(field_schema, name, depth + 1)
            for name, field_schema in schema.get("properties", {}).items()
            if name in required or (depth < 5 and not self._one_in(3))
        }
        if not schema.get("properties") and schema.get("additionalProperties"):
            values["loss"] = self._random.choice((0.5, "NaN", {"a": 1}, [1], "text", None, True))
        return values

    def _plain(self, schema: Mapping[str, Any], kind: object) -> Any:
        if kind == "integer":
            least = int(schema.get("minimum", 0))
            return self._random.randint(least, min(int(schema.get("maximum", least + 3)), least + 3))
        if kind == "number":
            return self._random.choice((0, 0.5, 1.0, -3))
        if kind == "boolean":
            return self._random.choice((True, False))
        if kind == "null":
            return None
        if kind == "string":
            return "2026-01-01T00:00:00Z" if schema.get("format") == "date-time" else self._random.choice(TEXTS[:40])
        return self._random.choice(({}, {"a": 1}, "text", 1))

    def _one_in(self, count: int) -> bool:
        return self._random.randrange(count) == 0


def _quoted(value: Any) -> str:
    """Returns a value as text of a URL. Text that cannot be encoded becomes bytes that are not UTF-8."""
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        return quote(text[:2000], safe="")
    except UnicodeEncodeError:
        return quote_from_bytes(text[:2000].encode("utf-8", "surrogatepass"), safe="")
