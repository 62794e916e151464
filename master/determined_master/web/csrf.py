"""CSRF check: a browser may write with only its cookie from this origin. Pure."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from determined_master.authentication import COOKIE, bearer

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
PAGE_HEADER = "x-detent-page"
_PORTS = {"http": 80, "https": 443}


def refusal(method: str, headers: Mapping[str, str]) -> str | None:
    """Why the request is refused, in words; None where it is not. Names of ``headers`` are in lower case.

    A token in a header is put there by whoever holds it; a cookie goes along by itself, also from another site's page.
    """
    if method in SAFE or COOKIE not in headers.get("cookie", "") or bearer(headers.get("authorization")):
        return None
    if headers.get("sec-fetch-site") in ("same-origin", "none"):
        return None
    if is_same(headers.get("origin", ""), headers.get("host", "")):
        return None
    # Another site's page cannot add a header of its own choice without asking first, and is not answered.
    if headers.get(PAGE_HEADER) == "1":
        return None
    return "this request did not come from this master's own page; send a token, or the header X-Detent-Page: 1"


def is_same(origin: str, host: str) -> bool:
    """Browsers leave out a port that goes without saying, proxies may add it."""
    try:
        from_, to = urlsplit(origin), urlsplit(f"{urlsplit(origin).scheme}://{host}")
        default = _PORTS.get(from_.scheme)
        if default is None or not from_.hostname or from_.username is not None or to.username is not None:
            return False
        return (from_.hostname, from_.port or default) == (to.hostname, to.port or default)
    except ValueError:
        return False
