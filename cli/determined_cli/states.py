"""States as people read them."""

ENDED = frozenset({"COMPLETED", "CANCELED", "ERROR", "DELETED", "DELETE_FAILED"})


def shown(state: str | None) -> str:
    """Without the wire's prefix.

    >>> shown("STATE_ACTIVE")
    'ACTIVE'
    """
    return (state or "").removeprefix("STATE_")


def has_ended(state: str | None) -> bool:
    """Whether nothing of it goes on."""
    return shown(state) in ENDED
