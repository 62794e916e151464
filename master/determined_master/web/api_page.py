"""The page that lists the API's operations: plain HTML made from the OpenAPI document, without scripts."""

import html
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

PATH = "/detent/docs"
OPENAPI_PATH = "/detent/openapi.json"
_STYLE = "body{font:15px/1.5 sans-serif;margin:2em;max-width:70em}td{padding:.2em 1em .2em 0;vertical-align:top}"
_METHODS = ("get", "post", "put", "patch", "delete")


async def show(request: Request) -> HTMLResponse:
    nonce = secrets.token_urlsafe(16)
    policy = f"default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; frame-ancestors 'none'"
    headers = {"content-security-policy": policy, "referrer-policy": "no-referrer"}
    return HTMLResponse(page(request.app.openapi(), nonce), headers=headers)


def page(document: Mapping[str, Any], nonce: str) -> str:
    """Returns the page with one table per tag: method, path, summary, parameters."""
    tags: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if method in operations:
                operation = operations[method]
                tags.setdefault((operation.get("tags") or ["other"])[0], []).append(_row(method, path, operation))
    title = html.escape(f"{document['info']['title']} API {document['info']['version']}")
    tables = "".join(f"<h2>{html.escape(tag)}</h2><table>{''.join(rows)}</table>" for tag, rows in sorted(tags.items()))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<style nonce="{nonce}">{_STYLE}</style></head><body><h1>{title}</h1>'
        f'<p><a href="openapi.json">The OpenAPI document</a> describes every parameter and response.</p>{tables}'
        "</body></html>"
    )


def _row(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parameters = ", ".join(
        f"<code>{html.escape(each['name'])}</code>{'' if each.get('required') else '?'}"
        for each in operation.get("parameters", ())
    )
    summary = html.escape(operation.get("summary", ""))
    return (
        f"<tr><td><code>{method.upper()}</code></td><td><code>{html.escape(path)}</code></td>"
        f"<td>{summary}</td><td>{parameters}</td></tr>"
    )
