"""OpenAPI entries of the fast path, made from its body types, because FastAPI does not know these routes."""

from collections.abc import Iterable
from typing import Any

import msgspec

from determined.link.messages import OutputAck, OutputBatch
from determined_master.api.fast.routes import LogsBody, MetricsBody, ReportsBody

_REF = "#/components/schemas/{name}"
_MODELS = "#/components/schemas/{model}"
_EMPTY = {"type": "object", "title": "Empty", "properties": {}}
_REFUSED = {
    "type": "object",
    "title": "RefusedReports",
    "properties": {
        "refused": {
            "type": "array",
            "description": "The reports that are not stored: their index, and status and error as of a single report.",
            "items": {
                "type": "object",
                "properties": {
                    "index": {"type": "integer"},
                    "status": {"type": "integer"},
                    "error": {"type": "object"},
                },
            },
        }
    },
}


def add_hot(page: dict[str, Any], paths: Iterable[str]) -> None:
    """Adds each path, all of them POST, with the schema of its body."""
    types = (MetricsBody, ReportsBody, LogsBody)
    (metrics, reports, logs), components = msgspec.json.schema_components(types, ref_template=_REF)
    batch = OutputBatch.model_json_schema(ref_template=_MODELS)
    components.update(batch.pop("$defs", {}))
    bodies = {"metrics": (metrics, _EMPTY), "reports": (reports, _REFUSED), "logs": (logs, _EMPTY)}
    bodies["output"] = (batch, OutputAck.model_json_schema(ref_template=_MODELS))
    for path in paths:
        asked, answered = bodies[path.rsplit("/", 1)[1]]
        page["paths"][path] = {"post": _operation(path, asked, answered)}
    page.setdefault("components", {}).setdefault("schemas", {}).update(components)


def _operation(path: str, asked: dict[str, Any], answered: dict[str, Any]) -> dict[str, Any]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return {
        "tags": ["hot"],
        "parameters": [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names],
        "requestBody": {"required": True, "content": {"application/json": {"schema": asked}}},
        "responses": {"200": {"description": "Stored.", "content": {"application/json": {"schema": answered}}}},
    }
