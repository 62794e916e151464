"""The session cookie of a browser: for this master only, and not readable by scripts."""

from typing import Literal, TypedDict

from fastapi import Request, Response

from determined_master.api.proxy_prefix import prefix_of
from determined_master.auth.authentication import COOKIE, Authenticator
from determined_master.settings.settings import Settings
from determined_master.users.service import SESSION_DAYS


def set_cookie(response: Response, request: Request, settings: Settings, token: str, *, name: str) -> None:
    response.set_cookie(name, token, max_age=SESSION_DAYS * 86400, **_bounds(request, settings))


def delete_cookie(response: Response, request: Request, settings: Settings, authenticator: Authenticator) -> None:
    for name in (authenticator.cookie, COOKIE):
        response.delete_cookie(name, **_bounds(request, settings))


class _Bounds(TypedDict):
    httponly: bool
    samesite: Literal["strict"]
    secure: bool
    path: str


def _bounds(request: Request, settings: Settings) -> _Bounds:
    path = prefix_of(request, settings.base_path) or "/"
    return {"httponly": True, "samesite": "strict", "secure": request.url.scheme == "https", "path": path}
