"""Regular expressions of RE2, which take linear time: those of log policies, and of searches in a log."""

from typing import Any

import re2

MAX_POLICY_MEMORY_BYTES = 256 << 10
"""Bounds the program of a policy's pattern, and so the time that a line can take."""
NOT_SUPPORTED = (
    "Lookaround, such as (?=…), and references to groups, such as \\1, are not supported, because they can take "
    "exponential time"
)


class PatternError(ValueError):
    """RE2 refuses the expression; the text says why."""


def compiled(expression: str, *, max_memory: int = MAX_POLICY_MEMORY_BYTES, captures: bool = True) -> Any:  # noqa: ANN401  # re2 has no types
    """Returns the compiled expression, whose ``search`` returns None without a match. Raises PatternError.

    >>> compiled("out of (memory|time)").search("it is out of time") is None
    False
    >>> compiled("(")
    Traceback (most recent call last):
    determined.config.patterns.PatternError: missing ): (
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = max_memory
    options.never_capture = not captures
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise PatternError(said) from None
    except UnicodeEncodeError:
        raise PatternError("it contains half of a surrogate pair, which is not a character") from None
