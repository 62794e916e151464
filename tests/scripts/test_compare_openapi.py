"""The comparison of OpenAPI documents: the differences that it reports and those that it ignores."""

import copy
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "compare_openapi.py"
OLD: dict[str, Any] = {
    "paths": {
        "/a/{id}": {
            "get": {
                "operationId": "one",
                "parameters": [
                    {"in": "path", "name": "id", "required": True, "schema": {"type": "integer"}},
                    {"in": "query", "name": "limit", "schema": {"type": "integer", "default": 5}},
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
                    "404": {"description": "no such"},
                },
            },
            "post": {
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
                "responses": {"200": {}},
            },
        }
    },
    "components": {
        "schemas": {
            "A": {
                "title": "A",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "next": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}]},
                    "labels": {"type": "array", "items": {"type": "string"}},
                },
            }
        }
    },
}


def compared(change: Any) -> list[str]:
    """Returns the differences after a change of the document."""
    spec = importlib.util.spec_from_file_location("compare_openapi", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    new = copy.deepcopy(OLD)
    change(new)
    return [str(difference) for difference in module.compare(OLD, new)]


def _get(document: dict[str, Any]) -> Any:
    return document["paths"]["/a/{id}"]["get"]


def _schema(document: dict[str, Any]) -> Any:
    return document["components"]["schemas"]["A"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda d: d["paths"].pop("/a/{id}"), "GET /a/{id}: operation is gone"),
        (lambda d: d["paths"].update({"/b": {"get": {}}}), "GET /b: operation is new"),
        (lambda d: _get(d)["parameters"].pop(), "GET /a/{id}: parameter query limit: is gone"),
        (
            lambda d: _get(d)["parameters"][1].update(required=True),
            "GET /a/{id}: parameter query limit: was integer default=5, is required integer default=5",
        ),
        (lambda d: _get(d)["responses"].pop("404"), "GET /a/{id}: 404: status is gone"),
        (lambda d: _get(d)["responses"].update({"409": {}}), "GET /a/{id}: 409: status is new"),
        (lambda d: _schema(d)["properties"].pop("labels"), "GET /a/{id}: 200: field labels is gone"),
        (
            lambda d: _schema(d)["properties"]["labels"].update(items={"type": "integer"}),
            "GET /a/{id}: 200: field next.labels[] was string, is integer",
        ),
        (lambda d: _schema(d).update(required=[]), "POST /a/{id}: body: field name was required string, is string"),
    ],
)
def test_each_kind_of_difference_is_one_line(change, line):
    assert line in compared(change)


def test_ids_and_descriptions_are_not_compared():
    def change(document: dict[str, Any]) -> None:
        _get(document).update(operationId="two", description="new words")
        _schema(document).update(title="B", description="new words")

    assert compared(change) == []


def test_an_added_request_body_is_no_difference():
    def change(document: dict[str, Any]) -> None:
        _get(document)["requestBody"] = {"content": {"application/json": {"schema": {"type": "object"}}}}

    assert compared(change) == []


def test_the_command_prints_the_differences_and_fails(tmp_path):
    new = copy.deepcopy(OLD)
    del new["paths"]["/a/{id}"]["post"]
    for name, document in (("old.json", OLD), ("new.json", new)):
        (tmp_path / name).write_text(json.dumps(document))
    words = [sys.executable, str(SCRIPT), "old.json", "new.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "POST /a/{id}: operation is gone\n",
        "OpenAPI: 1 differences\n",
    )
    same = subprocess.run([*words[:2], "old.json", "old.json"], cwd=tmp_path, capture_output=True, text=True)
    assert (same.returncode, same.stdout) == (0, "")
