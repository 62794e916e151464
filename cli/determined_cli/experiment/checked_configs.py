"""Configurations that were checked before and found without any error or warning.

They are not checked again before they are sent: the check itself takes longer than all the rest of a submission. The
master checks every configuration in any case.
"""

import hashlib
import importlib.util
from pathlib import Path

from determined.user_cache import UserCache

_FINE = "no diagnostics"


def is_known(text: str) -> bool:
    """Returns True if this text was found without diagnostics by the present rules."""
    return UserCache.named("configurations").get(_key(text)) == _FINE


def remember(text: str) -> None:
    """Stores that a text has no diagnostics, whichever kind of agents the cluster has."""
    UserCache.named("configurations").put(_key(text), _FINE)


def _key(text: str) -> str:
    """Returns the cache key of a text. It contains the names and times of the files of the rules, so that a text is
    checked again after an upgrade."""
    found = importlib.util.find_spec("determined.config")  # does not import it
    folder = Path(found.origin or "").parent if found else Path()
    facts = sorted((path.name, path.stat().st_mtime_ns) for path in folder.glob("*.py"))
    return hashlib.sha256(f"{facts}{text}".encode(errors="surrogateescape")).hexdigest()
