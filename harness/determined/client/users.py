"""Requests about users. Passwords are hashed as the API expects them."""

from typing import Any
from urllib.parse import quote

from determined.client.session import Session

PREFIX = "/api/v1/users"


def me(session: Session) -> dict[str, Any]:
    """Returns the user of the token."""
    return dict(session.get("/api/v1/me")["user"])


def list_all(session: Session, *, inactive: bool = False) -> list[dict[str, Any]]:
    """Returns the users that can log in; with ``inactive`` all users."""
    query = {} if inactive else {"active": True}
    return list(session.get(PREFIX, query)["users"])


def by_name(session: Session, name: str) -> dict[str, Any]:
    """Returns one user. Raises NotFound."""
    return dict(session.get(f"{PREFIX}/{quote(name, safe='')}/by-username")["user"])


def create(session: Session, name: str, password: str, *, admin: bool) -> dict[str, Any]:
    """Creates a user who can log in."""
    user = {"username": name, "admin": admin, "active": True}
    return dict(session.post(PREFIX, {"user": user, "password": password, "isHashed": True})["user"])


def set_password(session: Session, user_id: int, password: str) -> None:
    """Changes a password: the caller's own, or as an admin any user's."""
    session.patch(f"{PREFIX}/{user_id}", {"password": password, "isHashed": True})


def change(session: Session, user_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes ``username``, ``displayName``, ``admin``, ``active`` or ``agentUserGroup``; returns the user."""
    return dict(session.patch(f"{PREFIX}/{user_id}", changes)["user"])


def log_out(session: Session) -> None:
    """Ends the session of the token."""
    session.post("/api/v1/auth/logout")
