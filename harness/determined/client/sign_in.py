"""Sign-in to a master: a token from the environment, from the stored sign-ins, or for a name and a password."""

import hashlib
import os
from collections.abc import Mapping

from determined.client import addresses, auth_store
from determined.client.session import Session
from determined.errors import Forbidden, Unauthenticated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from determined.client.certificates import Trust

SALT = "GubPEmmotfiK9TMD6Zdw"
"""Salt of the wire protocol: clients send password hashes. An empty password is sent empty."""

GUEST = "determined"
"""User who may sign in without a password on clusters that allow it."""


def hashed(password: str) -> str:
    """Returns the hash that the wire protocol sends in place of a password."""
    return hashlib.sha512((SALT + password).encode()).hexdigest() if password else ""


def token_for(session: Session, user: str, password: str) -> str:
    """Signs in and returns a new token. Raises Unauthenticated, or Forbidden for a deactivated user."""
    body = {"username": user, "password": hashed(password), "isHashed": True}
    return str(session.post("/api/v1/auth/login", body)["token"])


def default_master(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the master's address: ``DET_MASTER``, the default master of the stored sign-ins, or localhost."""
    named = environ.get("DET_MASTER") or auth_store.read()["default_master"] or addresses.DEFAULT
    return addresses.canonical(named)


def sign_in(
    master: str | None = None,
    user: str | None = None,
    password: str | None = None,
    *,
    trust: "Trust | None" = None,
    environ: Mapping[str, str] = os.environ,
) -> Session:
    """Opens a session without a request to the master. ``trust`` says which certificate is trusted.

    The token is, in this order: a new one for ``user`` and ``password``; a new one for ``DET_USER`` and ``DET_PASS``;
    the stored one of ``user`` or of the active user; ``DET_USER_TOKEN``, which a task has; that of a task's allocation
    in ``DET_SESSION_TOKEN``; a new one for the guest without a password.

    Raises:
        Unauthenticated: there is none of these, or the password is wrong.
    """
    url = addresses.canonical(master) if master else default_master(environ)
    if password is None and environ.get("DET_USER") and user in (None, environ["DET_USER"]):
        user, password = (environ["DET_USER"], environ["DET_PASS"]) if "DET_PASS" in environ else (user, None)
    if password is not None:
        if user is None:
            raise Unauthenticated("a password needs the name of a user")
        return _with_new_token(url, user, password, trust)
    store = auth_store.read()
    name = user or auth_store.active_user(store, url)
    token = auth_store.token(store, url, name) if name else None
    if token is None and name in (None, environ.get("DET_USER")):
        token = environ.get("DET_USER_TOKEN")
    if token is not None:
        return Session(url, token=token, trust=trust)
    if name is None and environ.get("DET_SESSION_TOKEN"):
        return Session(url, allocation_token=environ["DET_SESSION_TOKEN"], trust=trust)
    try:
        return _with_new_token(url, name or GUEST, "", trust)
    except (Unauthenticated, Forbidden):
        raise Unauthenticated(
            f"not signed in to {url}; run `det user login USER`, or give a user and a password"
        ) from None


def _with_new_token(url: str, user: str, password: str, trust: "Trust | None") -> Session:
    with Session(url, trust=trust) as session:
        token = token_for(session, user, password)
    return Session(url, token=token, trust=trust)
