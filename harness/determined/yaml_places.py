"""Lines and columns of YAML: the only module of Detent's own environment that reads the marks of the parser.

It lies beside ``determined.errors`` because configurations, workflows and ``det`` use it, and imports nothing but the
parser. Code that runs under a user's interpreter cannot import it, and reads them itself: ``hydra/composer``,
``rlhf/task`` and ``runner``.
"""

from collections.abc import Iterator
from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of plain values; the one in C where PyYAML has it."""

_TOO_DEEP = "exceeded maximum nesting depth"
"""What the parser says of a text that is nested too deeply for it, since PyYAML 6.0.4."""


def events(text: str) -> Iterator[yaml.Event]:
    """Yields the events of a text. Raises yaml.YAMLError."""
    yield from yaml.parse(text, Loader=LOADER)


def compose(text: str) -> yaml.Node | None:
    """Returns the root of the only document, None without one. Raises yaml.YAMLError."""
    return yaml.compose(text, Loader=LOADER)


def position(part: yaml.Event | yaml.Node) -> tuple[int, int]:
    """Returns line and column of the start of an event or a node, counted from 1.

    >>> position(compose(" a: 1"))
    (1, 2)
    """
    mark: Any = part.start_mark
    return mark.line + 1, mark.column + 1


def span(node: yaml.Node) -> tuple[int, int]:
    """Returns the indexes of the text at which a node begins and ends."""
    return node.start_mark.index, node.end_mark.index


def error_position(error: Exception) -> tuple[int, int] | None:
    """Returns line and column of what the parser did not understand, counted from 1; None if it names no place.

    >>> try:
    ...     compose("a: ]")
    ... except yaml.YAMLError as error:
    ...     error_position(error)
    (1, 4)
    """
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return (mark.line + 1, mark.column + 1) if mark else None


def is_too_deep(error: yaml.MarkedYAMLError) -> bool:
    """Returns True if the parser refuses a text because of its nesting."""
    return error.problem == _TOO_DEEP
