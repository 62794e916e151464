"""Calls about users. Passwords come hashed as the wire wants them."""

from typing import Any
from urllib.parse import quote

from determined.client.session import Session

PREFIX = "/api/v1/users"


def me(session: Session) -> dict[str, Any]:
    """Who the token belongs to."""
    return dict(session.get("/api/v1/me")["user"])


def list_all(session: Session, *, inactive: bool = False) -> list[dict[str, Any]]:
    """Users that can log in, or really all."""
    query = {} if inactive else {"active": True}
    return list(session.get(PREFIX, query)["users"])


def by_name(session: Session, name: str) -> dict[str, Any]:
    """One user. Raises NotFound."""
    return dict(session.get(f"{PREFIX}/{quote(name, safe='')}/by-username")["user"])


def create(session: Session, name: str, password: str, *, admin: bool) -> dict[str, Any]:
    """A new user who can log in."""
    user = {"username": name, "admin": admin, "active": True}
    return dict(session.post(PREFIX, {"user": user, "password": password, "isHashed": True})["user"])


def set_password(session: Session, user_id: int, password: str) -> None:
    """Changes a password: one's own, or as an admin anybody's."""
    session.patch(f"{PREFIX}/{user_id}", {"password": password, "isHashed": True})


def log_out(session: Session) -> None:
    """Ends the session that the token stands for."""
    session.post("/api/v1/auth/logout")
