"""Problems as the checks find them: by path, without a line."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from determined.config.diagnostics import Path


@dataclass(frozen=True)
class Finding:
    """A problem of a configuration.

    Attributes:
        at: selects the key or the value for the position.
        without_containers: True for a problem that exists only on a cluster where no agent runs tasks in containers.
    """

    code: str
    path: Path
    message: str
    hint: str | None = None
    at: Literal["key", "value"] = "value"
    severity: Literal["error", "warning"] = "error"
    without_containers: bool = False


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Returns the known word that is most similar to ``word``; None if none is.

    >>> nearest("max_lenght", ["max_length", "metric"])
    'max_length'
    """
    matches = difflib.get_close_matches(word[:100], list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
