"""Store of sign-ins: tokens by master and user, and the default master."""

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from determined.client.addresses import canonical
from determined_launch.atomic_file import write_atomic

Store = dict[str, Any]


def path(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the path of the store, ``<config>/detent/auth.json``."""
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "detent" / "auth.json"


def read(file: Path | None = None) -> Store:
    """Reads the store. A missing or damaged file counts as empty: the user can sign in again."""
    try:
        value = json.loads((file or path()).read_bytes())
    except (OSError, ValueError):
        value = {}
    store: Store = value if isinstance(value, dict) else {}
    masters = store.get("masters")
    default = store.get("default_master")
    return {
        "default_master": default if isinstance(default, str) else None,
        "masters": {url: entry for url, entry in masters.items() if isinstance(entry, dict)}
        if isinstance(masters, dict)
        else {},
    }


def remember(master_url: str, user: str, token: str) -> None:
    """Stores the token and makes ``user`` the active user of that master."""

    def change(store: Store) -> None:
        entry = store["masters"].setdefault(canonical(master_url), {})
        tokens = entry.get("tokens")
        entry["tokens"] = {**(tokens if isinstance(tokens, dict) else {}), user: token}
        entry["active_user"] = user

    _update(change)


def forget(master_url: str, user: str) -> None:
    """Removes a user's token."""

    def change(store: Store) -> None:
        entry = store["masters"].get(canonical(master_url), {})
        if isinstance(entry.get("tokens"), dict):
            entry["tokens"].pop(user, None)
        if entry.get("active_user") == user:
            entry["active_user"] = None

    _update(change)


def trust_certificate(master_url: str, pem: str) -> None:
    """Stores the certificate of a master that the user has confirmed."""

    def change(store: Store) -> None:
        store["masters"].setdefault(canonical(master_url), {})["certificate"] = pem

    _update(change)


def certificate(store: Store, master_url: str) -> str | None:
    """Returns the confirmed certificate of a master as PEM, or None."""
    value = store["masters"].get(canonical(master_url), {}).get("certificate")
    return value if isinstance(value, str) else None


def set_default_master(url: str | None) -> None:
    """Sets the master that is used if neither ``-m`` nor ``DET_MASTER`` names one; None clears it."""

    def change(store: Store) -> None:
        store["default_master"] = canonical(url) if url else None

    _update(change)


def active_user(store: Store, master_url: str) -> str | None:
    """Returns the active user of a master, or None."""
    user = store["masters"].get(canonical(master_url), {}).get("active_user")
    return user if isinstance(user, str) else None


def token(store: Store, master_url: str, user: str) -> str | None:
    """Returns the user's token for a master, or None."""
    tokens = store["masters"].get(canonical(master_url), {}).get("tokens")
    value = tokens.get(user) if isinstance(tokens, dict) else None
    return value if isinstance(value, str) else None


def _update(change: Callable[[Store], None]) -> None:
    """Changes the store under a lock, so that concurrent commands lose no sign-in. The file has mode 0600 at any
    moment."""
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        store = read(file)
        change(store)
        write_atomic(file, json.dumps(store, indent=2))
    finally:
        os.close(lock)
