"""Parts of Markdown pages: tables and code spans."""

from collections.abc import Iterable, Sequence


def code(text: object) -> str:
    """Returns a code span. Pipes are escaped, because cells of tables end at them.

    >>> code("a|b")
    '`a\\\\|b`'
    """
    return f"`{str(text).replace('|', chr(92) + '|')}`"


def cell(text: str) -> str:
    """Returns ``text`` on one line, as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; cells are Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"
