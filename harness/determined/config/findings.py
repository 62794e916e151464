"""A problem as the checks find it: by path, not yet by line."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from determined.config.diagnostics import Path


@dataclass(frozen=True)
class Finding:
    """``at`` says whether the key or the value is to be pointed at."""

    code: str
    path: Path
    message: str
    hint: str | None = None
    at: Literal["key", "value"] = "value"
    severity: Literal["error", "warning"] = "error"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that ``word`` was most likely meant to be.

    >>> nearest("max_lenght", ["max_length", "metric"])
    'max_length'
    """
    matches = difflib.get_close_matches(word[:100], list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
