"""Opens the session of a command: master and user from flags, environment and remembered sign-ins."""

import hashlib
import os
import sys
from collections.abc import Mapping
from typing import Protocol

from determined.client.session import Session
from determined.errors import Forbidden, Unauthenticated
from determined_cli import addresses, auth_store

SALT = "GubPEmmotfiK9TMD6Zdw"
"""Fixed by the wire: passwords are never sent as typed. An empty one is sent empty."""

GUEST = "determined"


class Options(Protocol):
    """The flags before the noun that choose master and user."""

    master: str | None
    user: str | None


_opened: list[Session] = []


def open_session(url: str, token: str | None = None) -> Session:
    """A session that :func:`close` ends."""
    session = Session(url, token=token)
    _opened.append(session)
    return session


def close() -> None:
    """Ends every session of this command."""
    while _opened:
        _opened.pop().close()


def master_url(options: Options, environ: Mapping[str, str] = os.environ) -> str:
    """``-m``, then ``DET_MASTER``, then the one logged in to, then localhost."""
    named = options.master or environ.get("DET_MASTER")
    if not named:
        named = auth_store.read()["default_master"] or addresses.DEFAULT
    return addresses.canonical(named)


def connect(options: Options, environ: Mapping[str, str] = os.environ) -> Session:
    """A session for the user who is meant; logs in where no token is at hand. Raises Unauthenticated."""
    url = master_url(options, environ)
    store = auth_store.read()
    user, password = options.user, environ.get("DET_PASS")
    if user is None and environ.get("DET_USER") and password is not None:
        return _by_password(url, environ["DET_USER"], password)
    if user is not None and user == environ.get("DET_USER") and password is not None:
        return _by_password(url, user, password)
    user = user or auth_store.active_user(store, url)
    token = auth_store.token(store, url, user) if user else None
    if token is not None:
        return open_session(url, token=token)
    if environ.get("DET_USER_TOKEN") and user in (None, environ.get("DET_USER")):
        return open_session(url, token=environ["DET_USER_TOKEN"])
    if user is not None:
        return open_session(url, token=log_in(url, user, ask_password(user)))
    try:
        return open_session(url, token=log_in(url, GUEST, ""))
    except (Unauthenticated, Forbidden):
        raise Unauthenticated(f"not logged in to {url}; `det user login USER` does it") from None


def anonymous(options: Options) -> Session:
    """For what needs no login."""
    return open_session(master_url(options))


def log_in(url: str, user: str, password: str, *, keep: bool = False) -> str:
    """A fresh token; ``keep`` remembers it."""
    body = {"username": user, "password": hashed(password), "isHashed": True}
    answer = open_session(url).post("/api/v1/auth/login", body)
    token = str(answer["token"])
    if keep:
        auth_store.remember(url, user, token)
    return token


def _by_password(url: str, user: str, password: str) -> Session:
    """The kept token if it still opens the door: checking one is far cheaper than a password."""
    token = auth_store.token(auth_store.read(), url, user)
    if token is not None:
        session = open_session(url, token=token)
        try:
            session.get("/api/v1/me")
            return session
        except Unauthenticated:
            auth_store.forget(url, user)
    return open_session(url, token=log_in(url, user, password))


def hashed(password: str) -> str:
    """A password as the wire wants it."""
    return hashlib.sha512((SALT + password).encode()).hexdigest() if password else ""


def ask_password(user: str, prompt: str = "Password for {}: ") -> str:
    """Asks on the terminal; without one there is nobody to ask."""
    if not sys.stdin.isatty():
        raise Unauthenticated(f"a password for {user} is needed; set DET_USER and DET_PASS, or log in on a terminal")
    from getpass import getpass

    return getpass(prompt.format(user))
