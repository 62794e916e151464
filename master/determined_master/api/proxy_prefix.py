"""The path prefix under which a proxy serves this master.

A header's value is used only if it has the form of a path, because it becomes part of the page and of headers.
"""

import re

from starlette.requests import HTTPConnection

_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
MAX_LENGTH = 200


def cleaned(text: str) -> str:
    """Returns the prefix as ``/a/b`` without a trailing slash; empty for the root and for invalid paths.

    >>> cleaned("/cluster/"), cleaned("//evil.example"), cleaned("/a/../b"), cleaned('/"><script>')
    ('/cluster', '', '', '')
    """
    text = text.strip().removesuffix("/")
    return text if len(text) <= MAX_LENGTH and _PATH.fullmatch(text) else ""


def prefix_of(connection: HTTPConnection, base_path: str) -> str:
    """Returns the prefix of the nearest proxy, else the setting."""
    said = connection.headers.get("x-forwarded-prefix", "")
    return cleaned(said.rpartition(",")[2]) or cleaned(base_path)


def inside(path: str, base_path: str) -> str:
    """Returns the path without the prefix that a proxy has passed on.

    >>> inside("/cluster/api/v1/me", "/cluster"), inside("/cluster", "/cluster"), inside("/clusters", "/cluster")
    ('/api/v1/me', '/', '/clusters')
    """
    if not base_path or not path.startswith(base_path):
        return path
    rest = path[len(base_path) :]
    return path if rest and not rest.startswith("/") else rest or "/"
