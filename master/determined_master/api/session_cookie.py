"""The session cookie of a browser: for this master only, and not readable by scripts."""

from typing import Literal, TypedDict

from fastapi import Request, Response

from determined_master.api.proxy_prefix import prefix_of
from determined_master.authentication import COOKIE
from determined_master.services import Services
from determined_master.users.service import SESSION_DAYS


def give(response: Response, request: Request, services: Services, token: str, *, name: str) -> None:
    response.set_cookie(name, token, max_age=SESSION_DAYS * 86400, **_bounds(request, services))


def take(response: Response, request: Request, services: Services) -> None:
    for name in (services.authenticator.cookie, COOKIE):
        response.delete_cookie(name, **_bounds(request, services))


class _Bounds(TypedDict):
    httponly: bool
    samesite: Literal["strict"]
    secure: bool
    path: str


def _bounds(request: Request, services: Services) -> _Bounds:
    path = prefix_of(request, services.settings.base_path) or "/"
    return {"httponly": True, "samesite": "strict", "secure": request.url.scheme == "https", "path": path}
