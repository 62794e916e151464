"""Limits the size of request bodies; larger ones are refused before they are read."""

from starlette.types import Message, Receive

from determined_master.errors import BodyTooLarge

SIGN_IN_BYTES = 64 * 1024
"""Limit for routes that need no sign-in."""
DEFAULT_BYTES = 8 * 1024 * 1024
REPORT_BYTES = 32 * 1024 * 1024
"""Limit for batches of metrics, log lines and output, which authenticate before they read."""
SIGN_IN_PATHS = ("/api/v1/auth/", "/detent/sign-in")
_REPORTS = ("/metrics", "/reports", "/task/logs", "/output")

_WITH_CONTEXTS = ("/api/v1/experiments", "/api/v1/commands", "/api/v1/shells")


def limit_of(path: str) -> int | None:
    """Returns the limit in bytes, or None for routes that authenticate first and limit what they store.

    >>> limit_of("/api/v1/auth/login"), limit_of("/api/v1/experiments"), limit_of("/api/v1/experiments/7/pause")
    (65536, None, 8388608)
    """
    if path in _WITH_CONTEXTS or path.startswith(("/detent/contexts/", "/proxy/")):
        return None
    if path.startswith(SIGN_IN_PATHS):
        return SIGN_IN_BYTES
    return REPORT_BYTES if path.endswith(_REPORTS) else DEFAULT_BYTES


def too_large(path: str, announced: bytes) -> BodyTooLarge | None:
    """Returns the error for a request that announces a body over the limit. ``announced``: its ``content-length``."""
    limit = limit_of(path)
    return _error(limit) if limit is not None and announced.isdigit() and int(announced) > limit else None


def counted(path: str, receive: Receive) -> Receive:
    """Returns ``receive`` with a limit, for bodies whose length was not announced."""
    limit = limit_of(path)
    if limit is None:
        return receive
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise _error(limit)
        return message

    return limited


def _error(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than the {limit} bytes that this route takes")
