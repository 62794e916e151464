"""Reference of the REST API, from the master's OpenAPI document."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from generate.markdown import cell, code, table

HEAD = """# REST API

The master answers below `/api/v1` as Determined 0.38.1 does, and below `/detent` in ways of its own. Requests carry
`Authorization: Bearer TOKEN`; `POST /api/v1/auth/login` gives a token. Errors have one form:
`{"error": {"code": 5, "reason": "NotFound", "error": "no such path"}}`. The whole description, with every field, is the
OpenAPI document that a running master serves at `/detent/openapi.json`.

"""
_METHODS = ("get", "head", "post", "put", "patch", "delete")


def page() -> str:
    """Returns the page with one table for each tag."""
    return render(document())


def document() -> dict[str, Any]:
    """Returns the OpenAPI document of a master that is not started."""
    from determined_master.server.app import create_app
    from determined_master.settings.settings import Settings
    from determined_master.wiring.services import build

    with TemporaryDirectory() as folder:
        return create_app(build(Settings(data=Path(folder)))).openapi()


def render(openapi: Mapping[str, Any]) -> str:
    """Returns the page for an OpenAPI document."""
    tags: dict[str, list[tuple[str, ...]]] = {}
    for path, operations in sorted(openapi["paths"].items()):
        for method in _METHODS:
            if method in operations:
                operation = operations[method]
                names = [each["name"] for each in operation.get("parameters", ()) if each["in"] != "path"]
                request, summary = code(f"{method.upper()} {path}"), cell(operation.get("summary", ""))
                row = (request, summary, ", ".join(map(code, names)))
                tags.setdefault((operation.get("tags") or ["other"])[0], []).append(row)
    parts = (f"## {tag}\n\n" + table(("request", "does", "query"), rows) for tag, rows in sorted(tags.items()))
    return HEAD + "\n".join(parts)
