"""Serves the built page: one document for all addresses, its files, and addresses of Determined's page."""

import re
import secrets
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from determined_master.api.change_feed import ChangeFeed
from determined_master.api.proxy_prefix import prefix_of
from determined_master.web.assets import Asset, BuiltPage, PageFiles, chosen, held

ADDRESSES = frozenset({"/", "/sign-in", "/compare", "/cluster", "/checkpoints", "/users", "/events", "/settings"})
BELOW = ("/experiments", "/trials", *("/dashboard", "/clusters", "/projects", "/workspaces"))
"""The last four are paths of the older page, so that existing links work."""
_EXPERIMENT = "overview|trials|metrics|hyperparameters|logs|checkpoints|code|config|notes|visualization|configuration"
_TRIAL = "curves|hyperparameters|attempts|profile|profiler|logs|shell"
_NUMBER = "[0-9]{1,19}"
_VIEWS = re.compile(
    rf"/experiments(/{_NUMBER}(/({_EXPERIMENT}))?)?|(/experiments/{_NUMBER})?/trials/{_NUMBER}(/({_TRIAL}))?"
    rf"|/dashboard|/clusters|/projects/{_NUMBER}|/workspaces(/{_NUMBER})?"
)
"""What ``BELOW`` holds for programs. A browser gets the page at each address below, and the page leads on."""
OLDER = "/det"
FOR_PROGRAMS = frozenset({"api", "detent", "assets", "docs"})
"""First parts of paths under which an unknown path is an error in JSON, for browsers too."""
NOT_BUILT = "The web page is not built. Build it with `make webui` in the checkout, or install the wheel.\n"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{nonce}; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)


class Pages(BaseRoute):
    """Follows all other routes, so that the page hides no API route."""

    def __init__(self, files: PageFiles, base_path: str) -> None:
        self._files = files
        self._base_path = base_path

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return Match.NONE, {}
        path: str = scope["path"]
        headers = Headers(scope=scope)
        if is_address(path, is_browser=takes_html(headers)) or is_older(path):
            return Match.FULL, {}
        page = self._files.page
        is_ours = page is not None and (path in page.assets or is_mistyped(path, headers))
        return (Match.FULL, {}) if is_ours else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(Request(scope))(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        path: str = request.scope["path"]
        prefix = prefix_of(request, self._base_path)
        page = self._files.page
        if page is not None and path in page.assets:
            return file(page.assets[path], request.headers)
        if is_older(path):
            return redirect(path, request.url.query, prefix)
        if page is None:
            return PlainTextResponse(NOT_BUILT, 404, {"cache-control": "no-store", **protection()})
        feed: ChangeFeed = request.app.state.feed
        status = 200 if is_address(path, is_browser=takes_html(request.headers)) else 404
        return document(page, prefix, secrets.token_urlsafe(16), feed.name_of(feed.newest()), status)


def is_address(path: str, *, is_browser: bool = True) -> bool:
    """Returns True if the page serves this path; to a program only at the page's own routes."""
    path = path.rstrip("/") or "/"
    if path in ADDRESSES or not is_browser:
        return path in ADDRESSES or _VIEWS.fullmatch(path) is not None
    return any(path == below or path.startswith(f"{below}/") for below in BELOW)


def takes_html(headers: Headers) -> bool:
    return "text/html" in headers.get("accept", "")


def is_older(path: str) -> bool:
    return path == OLDER or path.startswith(f"{OLDER}/")


def is_mistyped(path: str, headers: Headers) -> bool:
    """Returns True if a person opened a path that nothing serves: the page says so, with a way back."""
    return path.split("/")[1] not in FOR_PROGRAMS and takes_html(headers)


def document(page: BuiltPage, prefix: str, nonce: str, event: str, status: int) -> Response:
    """``event``: newest event; later answers to the page include it, and the stream resumes after it."""
    text = page.index.replace("%BASE%", f"{prefix}/").replace("%NONCE%", nonce).replace("%BUILD%", page.build)
    text = text.replace("%EVENT%", event)
    headers = {"cache-control": "no-cache", **protection(nonce)}
    return Response(text, status, media_type="text/html; charset=utf-8", headers=headers)


def file(asset: Asset, asked: Headers) -> Response:
    headers = {"cache-control": "public, max-age=31536000, immutable" if asset.is_immutable else "no-cache"}
    path = asset.path
    if asset.compressed:
        headers["vary"] = "accept-encoding"
        encoding = chosen(asked.get("accept-encoding", ""), asset.compressed)
        if encoding is not None:
            headers["content-encoding"], path = encoding, asset.compressed[encoding]
    if not asset.is_immutable:
        return FileResponse(path, media_type=asset.media_type, headers=headers | protection())
    return Response(held(path), media_type=asset.media_type, headers=headers | protection())


def redirect(path: str, query: str, prefix: str) -> Response:
    """Redirects to the same path without ``/det``, always on this host: two slashes would name another one."""
    to = "/" + path.removeprefix(OLDER).replace("\\", "/").lstrip("/")
    where = prefix + quote(to, safe="/") + (f"?{query}" if query else "")
    return RedirectResponse(where, 307, protection())


def protection(nonce: str = "") -> dict[str, str]:
    """Content security policy of the page."""
    policy = _POLICY.format(nonce=f" 'nonce-{nonce}'" if nonce else "")
    return {"content-security-policy": policy, "referrer-policy": "no-referrer"}
