"""Bodies that are far too long, deep or large, on every route of the OpenAPI document: refused before any work."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest
from tests.security.test_generated_requests import make_generator, sign_in
from tests.support.cluster import Cluster
from tests.support.write_holds import MAX_HOLD_SECONDS, write_holds

pytestmark = pytest.mark.budget(40, "calls every route")

ITEMS = 20_000
CHARACTERS = 2_000_000
DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
LARGE = b'{"zzz": "' + b"x" * 17_000_000 + b'"}'
ANSWERS_WITH_ERRORS = {"/detent/config/check"}
"""Routes that answer 200 and list the errors of the body."""
MAX_SECONDS = 2.0
"""Processor time of one request, most of which is the parsing of its body."""
UNBOUNDED = {"config", "metadata", "hparams", "metrics", "snapshot", "defaultConfig"}
"""Objects that are stored as they are: only the limit of the whole body applies."""


@dataclass(frozen=True)
class Oversized:
    method: str
    path: str
    what: str
    body: bytes


class Bodies:
    """Valid bodies by their schema, of which one part is made too long."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas = document.get("components", {}).get("schemas", {})

    def of(self, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for path, part in self._parts(schema, ()):
            name = ".".join(map(str, path))
            if part.get("type") == "array":
                item = self.valid(part.get("items", {}))
                yield f"{ITEMS} items of {name}", self._with(schema, path, [item] * ITEMS)
            elif part.get("type") == "string" and "enum" not in part and "format" not in part:
                yield f"{CHARACTERS} characters of {name}", self._with(schema, path, "x" * CHARACTERS)

    def valid(self, schema: Mapping[str, Any]) -> Any:
        schema = self._resolved(schema)
        if "enum" in schema or "const" in schema:
            return schema.get("const", (schema.get("enum") or [None])[0])
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            wanted = schema.get("required", ())
            return {name: self.valid(part) for name, part in schema.get("properties", {}).items() if name in wanted}
        if kind == "array":
            return [self.valid(schema.get("items", {}))] * int(schema.get("minItems", 0))
        if kind == "string":
            return "2026-01-01T00:00:00Z" if schema.get("format") == "date-time" else "x"
        return {"integer": 1, "number": 1.0, "boolean": False}.get(str(kind))

    def _parts(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        schema = self._resolved(schema)
        yield path, schema
        if len(path) < 4 and not (path and path[-1] in UNBOUNDED):
            for name, part in schema.get("properties", {}).items():
                yield from self._parts(part, (*path, name))

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" in schema:
            return self._resolved(self._schemas[schema["$ref"].rsplit("/", 1)[1]])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._resolved(next(each for each in schema[key] if each.get("type") != "null"))
        return schema

    def _with(self, schema: Mapping[str, Any], path: tuple[str, ...], value: Any) -> Any:
        if not path:
            return value
        part = self._resolved(schema)
        whole = self.valid(part)
        return {
            **(whole if isinstance(whole, dict) else {}),
            path[0]: self._with(part["properties"][path[0]], path[1:], value),
        }


def oversized(document: Mapping[str, Any]) -> Iterator[Oversized]:
    bodies = Bodies(document)
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None:
                continue
            verb = method.upper()
            for what, value in bodies.of(content.get("schema", {})):
                yield Oversized(verb, path, what, json.dumps(value).encode())
            yield Oversized(verb, path, "deep nesting", DEEP)
            yield Oversized(verb, path, "a large body", LARGE)


@pytest.mark.parametrize("every", [pytest.param(3, id="sample"), pytest.param(1, id="all", marks=pytest.mark.long)])
async def test_an_oversized_body_is_refused_by_every_route_before_any_work(cluster: Cluster, every: int):
    generator, seeded = await make_generator(cluster)
    document = (await cluster.client.get("/detent/openapi.json")).json()
    await sign_in(cluster)
    cluster.master.draining.set()
    failures: list[str] = []
    statuses: Counter[int] = Counter()
    with write_holds(cluster.master.database) as holds:
        for request in islice(oversized(document), 0, None, every):
            url = generator.reaching(request.path)
            headers = {"content-type": "application/json"}
            if url.startswith("/detent/agents/"):
                headers["Authorization"] = f"Bearer {cluster.master.secrets.join_token}"
            elif (
                "/search-task" in url or "removed" in url or (url.endswith("/checkpoints") and request.method == "POST")
            ):
                headers |= cluster.as_task(seeded.allocation)
            start, before = time.process_time(), len(holds.seconds)
            async with asyncio.timeout(30):
                answer = await cluster.client.request(request.method, url, content=request.body, headers=headers)
            seconds = time.process_time() - start
            longest = max(holds.seconds[before:], default=(0.0, ""))[0]
            statuses[answer.status_code] += 1
            if answer.status_code >= 500 or seconds > MAX_SECONDS or longest > MAX_HOLD_SECONDS:
                failures.append(
                    f"{request.method} {request.path} with {request.what}: {answer.status_code} after {seconds:.2f} s, "
                    f"held {longest:.2f} s: {answer.text[:200]}"
                )
            elif answer.status_code < 400 and request.path not in ANSWERS_WITH_ERRORS:
                failures.append(f"{request.method} {request.path} took {request.what}: {answer.status_code}")
            if answer.status_code == 401 and "Authorization" not in headers:
                await sign_in(cluster)
    print(f"oversized bodies by status: {dict(statuses)}; {holds}")
    assert failures == [], "\n".join(failures)
    # Otherwise the requests were refused for another reason, such as a missing login.
    assert statuses[400] + statuses[413] > 0.9 * statuses.total() > 150 / every
