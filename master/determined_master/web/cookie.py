"""The cookie that a browser is signed in with: for this master alone, out of reach of every script."""

from fastapi import Request, Response

from determined_master.settings import Settings
from determined_master.users.service import SESSION_DAYS
from determined_master.web.prefix import prefix_of

NAME = "auth"


def give(response: Response, request: Request, settings: Settings, token: str) -> None:
    response.set_cookie(
        NAME,
        token,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        path=prefix_of(request, settings.base_path) or "/",
        max_age=SESSION_DAYS * 86400,
    )


def take(response: Response, request: Request, settings: Settings) -> None:
    response.delete_cookie(
        NAME,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        path=prefix_of(request, settings.base_path) or "/",
    )
