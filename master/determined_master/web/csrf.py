"""CSRF check: with only a cookie, browsers may write only from this origin. Pure."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from determined_master.auth.authentication import COOKIE, bearer

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
PAGE_HEADER = "x-detent-page"
_PORTS = {"http": 80, "https": 443}


def refusal(method: str, headers: Mapping[str, str]) -> str | None:
    """Returns why the request is refused, or None. Names of ``headers`` are in lower case. Only the holder of a token
    can send it in a header, while browsers add a cookie also on another site's page."""
    if method in SAFE or COOKIE not in headers.get("cookie", "") or bearer(headers.get("authorization")):
        return None
    if headers.get("sec-fetch-site") in ("same-origin", "none"):
        return None
    if is_same(headers.get("origin", ""), headers.get("host", "")):
        return None
    # Another site's page cannot add a custom header without a CORS preflight, which is not answered.
    if headers.get(PAGE_HEADER) == "1":
        return None
    return "the request does not come from this master's own web page; send a token, or the header X-Detent-Page: 1"


def is_same(origin: str, host: str) -> bool:
    """Returns True for the host's own origin: browsers omit the default port, proxies may add it."""
    try:
        from_, to = urlsplit(origin), urlsplit(f"{urlsplit(origin).scheme}://{host}")
        default = _PORTS.get(from_.scheme)
        if default is None or not from_.hostname or from_.username is not None or to.username is not None:
            return False
        return (from_.hostname, from_.port or default) == (to.hostname, to.port or default)
    except ValueError:
        return False
