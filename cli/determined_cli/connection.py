"""Opens the session of a command: master and user from flags, environment and stored sign-ins."""

import os
import sys
from collections.abc import Mapping
from typing import Protocol

from determined.client import addresses, auth_store, sign_in
from determined.client.session import Session
from determined.errors import Forbidden, Unauthenticated


class Options(Protocol):
    """The flags before the noun that choose master and user."""

    master: str | None
    user: str | None


_opened: list[Session] = []


def open_session(url: str, token: str | None = None) -> Session:
    """Opens a session, which :func:`close` ends."""
    session = Session(url, token=token)
    _opened.append(session)
    return session


def close() -> None:
    """Closes every session of this command."""
    while _opened:
        _opened.pop().close()


def master_url(options: Options, environ: Mapping[str, str] = os.environ) -> str:
    """Returns the master's address: ``-m``, ``DET_MASTER``, the default master, or localhost."""
    return addresses.canonical(options.master) if options.master else sign_in.default_master(environ)


def connect(options: Options, environ: Mapping[str, str] = os.environ) -> Session:
    """Opens a session for the selected user and signs in if no token is stored. Raises Unauthenticated."""
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
        return open_session(url, token=log_in(url, sign_in.GUEST, ""))
    except (Unauthenticated, Forbidden):
        raise Unauthenticated(f"not logged in to {url}; run `det user login USER`") from None


def anonymous(options: Options) -> Session:
    """Opens a session for requests that need no sign-in."""
    return open_session(master_url(options))


def log_in(url: str, user: str, password: str, *, keep: bool = False) -> str:
    """Returns a new token; ``keep`` stores it."""
    token = sign_in.token_for(open_session(url), user, password)
    if keep:
        auth_store.remember(url, user, token)
    return token


def _by_password(url: str, user: str, password: str) -> Session:
    """Uses the stored token if it is still valid: checking it is much cheaper than checking a password."""
    token = auth_store.token(auth_store.read(), url, user)
    if token is not None:
        session = open_session(url, token=token)
        try:
            session.get("/api/v1/me")
            return session
        except Unauthenticated:
            auth_store.forget(url, user)
    return open_session(url, token=log_in(url, user, password))


def ask_password(user: str, prompt: str = "Password for {}: ") -> str:
    """Asks for a password on the terminal. Raises Unauthenticated without a terminal."""
    if not sys.stdin.isatty():
        raise Unauthenticated(f"no password for {user}: set DET_USER and DET_PASS, or log in on a terminal")
    from getpass import getpass

    return getpass(prompt.format(user))
