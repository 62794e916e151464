"""The grammar of Hydra's overrides, as far as commands are built from them."""

import re

_BARE = re.compile(r"[A-Za-z_./][\w./-]*\Z")
_NOT_TEXT = frozenset(("null", "true", "false", "inf", "nan"))


def key_of(override: str) -> str:
    """Returns the key or group of an override.

    >>> key_of("+model@net=large")
    'model@net'
    """
    return override.lstrip("+~").partition("=")[0]


def is_of_hydra(override: str) -> bool:
    """Returns True for an override of Hydra's own settings."""
    return key_of(override).startswith(("hydra.", "hydra/"))


def quoted(text: str) -> str:
    r"""Returns a text as a value of the grammar: quoted if it could be read as anything else.

    >>> print(quoted("runs/today"), quoted("lr=1,2"), quoted("it's"))
    runs/today 'lr=1,2' 'it\'s'
    """
    if _BARE.match(text) and text.lower() not in _NOT_TEXT:
        return text
    # A backslash is itself, except before a quote: there, and at the end, it is doubled.
    inner = re.sub(r"(\\+)(?='|\Z)", lambda found: found[1] * 2, text).replace("'", "\\'")
    return f"'{inner}'"
