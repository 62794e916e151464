"""Cookies between a browser and a task: the cluster's never reach a task, and a task sets none of the cluster's. Pure.

Browsers share cookies between all ports of a host. A cookie that scripts cannot read (``HttpOnly``) therefore gets the
task's label before its name on its way to the browser, and loses it on its way back: no other task receives it.
"""

import re
from collections.abc import Iterable

from determined_master.auth.authentication import COOKIE

VISIT = "detent_task_"
"""Beginning of the names of the cookies with which visitors are known at the origins of tasks."""
CONFINED = "detent_of_"
"""Beginning of the names of the tasks' own cookies that scripts cannot read."""
_HOST = "__Host-"
_CLUSTERS = re.compile(rf"{COOKIE}(_[0-9a-f]{{8}})?")
"""The sign-in cookies of every cluster: also of one that listens on another port of the host."""


def visit_name(label: str, *, is_secure: bool) -> str:
    """Returns the name of a visitor's cookie. Browsers let no other host set one that begins with ``__Host-``."""
    return f"{_HOST if is_secure else ''}{VISIT}{label}"


def pairs(headers: Iterable[str]) -> list[tuple[str, str]]:
    """Returns names and values of all cookies, also of those that are repeated.

    >>> pairs(["a=1; b=2", "a=3"])
    [('a', '1'), ('b', '2'), ('a', '3')]
    """
    texts = (text.strip() for header in headers for text in header.split(";"))
    split = (text.partition("=") for text in texts if text)
    return [(name.strip(), value.strip()) for name, separator, value in split if separator]


def values(headers: Iterable[str], name: str) -> list[str]:
    return [value for each, value in pairs(headers) if each == name]


def for_task(headers: Iterable[str], label: str) -> str:
    """Returns the cookies that a task gets; empty for none.

    >>> for_task(["auth_0123abcd=secret; theme=dark; detent_of_80-a_sid=1; detent_of_81-b_sid=2"], "80-a")
    'theme=dark; sid=1'
    """
    own = f"{CONFINED}{label}_"
    kept = [
        (name.removeprefix(own), value) for name, value in pairs(headers) if name.startswith(own) or not _is_ours(name)
    ]
    return "; ".join(f"{name}={value}" for name, value in kept if name)


def for_browser(set_cookie: str, label: str) -> str | None:
    """Returns the cookie that a task sets as its browser gets it, or None for one that a task may not set.

    >>> for_browser("sid=1; Domain=example.org; HttpOnly; Path=/", "80-a")
    'detent_of_80-a_sid=1; HttpOnly; Path=/'
    >>> for_browser("theme=dark", "80-a"), for_browser("auth_0123abcd=forged", "80-a"), for_browser("=auth=x", "80-a")
    ('theme=dark', None, None)
    """
    pair, *attributes = (part.strip() for part in set_cookie.split(";"))
    name, separator, value = pair.partition("=")
    name = name.strip()
    if not separator or not name:
        return None  # a browser sends its value alone, which could be a name and a value
    kept = [each for each in attributes if each.partition("=")[0].strip().lower() != "domain"]
    if any(each.lower() == "httponly" for each in kept):
        name = f"{CONFINED}{label}_{name}"
    elif _is_ours(name):
        return None
    return "; ".join((f"{name}={value.strip()}", *kept))


def _is_ours(name: str) -> bool:
    bare = name.removeprefix(_HOST)
    return bare.startswith((VISIT, CONFINED)) or _CLUSTERS.fullmatch(bare) is not None
