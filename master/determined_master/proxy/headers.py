"""Headers between a browser and a task, without what either side says to the master or could say in its name. Pure."""

from collections.abc import Iterable, Sequence

from determined_master.auth.authentication import TASK_HEADER
from determined_master.proxy import cookies

Headers = Sequence[tuple[bytes, bytes]]

MAX_HEADER_BYTES = 64 << 10
"""Of a request, all headers together."""
_HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
_FORWARDED = (b"x-forwarded-", b"x-detent-", b"sec-websocket-")
_NOT_FOR_TASKS = frozenset({b"cookie", b"expect", b"forwarded", b"http2-settings", b"x-real-ip", TASK_HEADER.encode()})
_OF_THE_HOST = frozenset(
    {
        b"alt-svc",
        b"clear-site-data",  # clears the cookies of all ports of the host
        b"cross-origin-resource-policy",
        b"date",
        b"server",
        b"set-cookie",
        b"strict-transport-security",  # holds for all ports of the host
    }
)
_CACHING = frozenset({b"cache-control", b"etag", b"expires", b"last-modified", b"pragma"})
PROTECTION: Headers = (
    (b"content-security-policy", b"frame-ancestors 'self'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
)
"""Added to every answer of a task: no page of another origin frames it or takes parts of it."""


def are_too_large(headers: Headers) -> bool:
    return sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES


def texts(headers: Headers, name: bytes) -> list[str]:
    """Returns the values of one header."""
    return [value.decode("latin-1") for each, value in headers if each.lower() == name]


def text(headers: Headers, name: bytes) -> str:
    return next(iter(texts(headers, name)), "")


def for_task(headers: Headers, *, label: str, scheme: str, client: str) -> list[tuple[bytes, bytes]]:
    """Returns the headers with which a request goes to a task.

    Args:
        headers: those of the request.
        label: the label of the task's port, for its cookies.
        scheme: ``http`` or ``https``, by which the visitor came.
        client: the visitor's address; empty if unknown.
    """
    named = _named_by_connection(headers)
    kept = [
        (name, value)
        for name, value in headers
        if name not in _HOP_BY_HOP
        and name not in _NOT_FOR_TASKS
        and name not in named
        and not name.startswith(_FORWARDED)
        and not (name == b"authorization" and value[:6].lower() == b"bearer")
    ]
    if own := cookies.for_task(texts(headers, b"cookie"), label):
        kept.append((b"cookie", own.encode("latin-1")))
    if b"chunked" in text(headers, b"transfer-encoding").lower().encode("latin-1"):
        kept.append((b"transfer-encoding", b"chunked"))
    kept.append((b"x-forwarded-proto", scheme.encode()))
    if host := text(headers, b"host"):
        kept.append((b"x-forwarded-host", host.encode("latin-1")))
    if client:
        kept.append((b"x-forwarded-for", client.encode("latin-1")))
    return kept


def for_browser(headers: Iterable[tuple[bytes, bytes]], label: str, *, may_cache: bool) -> list[tuple[bytes, bytes]]:
    """Returns the headers with which the answer of a task goes to its visitor.

    ``may_cache``: False where another task may later answer at the same origin, whose pages a cached file would be in.
    """
    lowered = [(name.lower(), value) for name, value in headers]
    named = _named_by_connection(lowered)
    left_out = _HOP_BY_HOP | _OF_THE_HOST | named | (frozenset() if may_cache else _CACHING)
    kept = [(name, value) for name, value in lowered if name not in left_out]
    for value in texts(lowered, b"set-cookie"):
        if confined := cookies.for_browser(value, label):
            kept.append((b"set-cookie", confined.encode("latin-1")))
    if not may_cache:
        kept.append((b"cache-control", b"no-store"))
    return [*kept, *PROTECTION]


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    """Returns the headers that ``Connection`` names: they are for the next hop alone."""
    words = (
        word.strip().lower().encode("latin-1") for value in texts(headers, b"connection") for word in value.split(",")
    )
    return frozenset(word for word in words if word)
