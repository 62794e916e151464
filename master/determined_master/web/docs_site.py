"""Serves the documentation site, which Sphinx has built, under ``/docs``; it needs no network and no sign-in."""

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

import determined_master

PATH = "/docs"
INDEX = "index.html"
NOT_BUILT = "The documentation is not built. Build it with `make docs` in the checkout, or install the wheel.\n"
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
# The theme sets sizes and hides parts by style attributes.
_POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def docs_folder() -> Path:
    """Returns the built site: ``_docs`` of this package in a wheel, else the checkout's build."""
    package = Path(determined_master.__file__).parent
    inside = package / "_docs"
    return inside if inside.is_dir() else package.parents[1] / "docs" / "_build" / "html"


class DocsSite(BaseRoute):
    """Serves the files of a folder; a site that is built later is served without a restart."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = StaticFiles(directory=folder, html=True, check_dir=False)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path = scope.get("path", "")
        asked = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        return (Match.FULL, {}) if asked and (path == PATH or path.startswith(f"{PATH}/")) else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope)
        await response(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        path: str = scope["path"]
        if path == PATH:
            return _below(path)
        try:
            response = await self._files.get_response(path.removeprefix(f"{PATH}/") or INDEX, scope)
        except HTTPException as error:
            return PlainTextResponse(await run_in_threadpool(self._missing, path), error.status_code)
        if isinstance(response, RedirectResponse):
            return _below(path)
        scripts = await run_in_threadpool(_scripts_of, response)
        response.headers["content-security-policy"] = _POLICY.format(scripts=scripts)
        response.headers["cache-control"] = "no-cache"
        response.headers["referrer-policy"] = "no-referrer"
        return response

    def _missing(self, path: str) -> str:
        return f"The documentation has no page {path[:200]}\n" if (self._folder / INDEX).is_file() else NOT_BUILT


def _below(path: str) -> Response:
    """Leads from a folder to its first page, relatively, so that a browser stays below the prefix of a proxy."""
    return RedirectResponse(f"./{quote(path.rpartition('/')[2])}/", 307)


def _scripts_of(response: Response) -> str:
    page = Path(response.path) if isinstance(response, FileResponse) else None
    return inline_scripts(page, page.stat().st_mtime_ns) if page and page.suffix == ".html" else ""


@lru_cache(256)
def inline_scripts(page: Path, _stamp: int) -> str:
    """Returns the hashes of a page's inline scripts for its policy; ``_stamp`` tells apart the builds of a page."""
    found = (hashlib.sha256(script).digest() for script in _INLINE_SCRIPT.findall(page.read_bytes()))
    return "".join(f" 'sha256-{base64.b64encode(each).decode()}'" for each in found)
