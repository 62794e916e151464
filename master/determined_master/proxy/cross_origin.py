"""Refuses requests that pages of other origins make to the origin of a task. Pure.

Ports of one host are one *site*, so a browser sends a visitor's cookie also with what another task's page asks for.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

_OWN = ("same-origin", "none")
_SAFE = ("GET", "HEAD")
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def refusal(method: str, headers: Mapping[str, str], *, is_websocket: bool = False) -> str | None:
    """Returns why a request is refused, or None. Names of ``headers`` are in lower case.

    >>> refusal("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"})
    'a page of another origin may not use this task in its visitor's name'
    >>> refusal("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"})
    """
    text = "a page of another origin may not use this task in its visitor's name"
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is not None and not is_same(origin, host):
        return text
    if is_websocket:
        return None
    site = headers.get("sec-fetch-site")
    if site is None or site in _OWN or is_navigation(method, headers):
        return None
    return text


def is_navigation(method: str, headers: Mapping[str, str]) -> bool:
    """Returns True if a person opens an address in a tab, as far as the browser says."""
    if method not in _SAFE:
        return False
    mode = headers.get("sec-fetch-mode")
    if mode is not None:
        return mode == "navigate" and headers.get("sec-fetch-dest") == "document"
    return "text/html" in headers.get("accept", "")


def is_same(origin: str, host: str) -> bool:
    """Returns True for the origin of the host itself; its default port may be left out on either side.

    >>> is_same("http://a.example", "a.example:80"), is_same("http://a:8100", "a:8101"), is_same("null", "a")
    (True, False, False)
    """
    try:
        from_ = urlsplit(origin)
        to = urlsplit(f"{from_.scheme}://{host}")
        default = _PORTS.get(from_.scheme)
        if default is None or not from_.hostname:
            return False
        return (from_.hostname, from_.port or default) == (to.hostname, to.port or default)
    except ValueError:
        return False
