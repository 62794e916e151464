"""Formats rows and objects as table, JSON, YAML or CSV on stdout."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO, overload

from determined_cli.output.table_layout import ColumnCells, FittedColumn, fit, unfitted

DEFAULT_WIDTH = 80
MAX_NAMED = 3
"""At most this many of the columns that are left out are named in the hint."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_NUMBER = re.compile(r"-?(\d+(\.\d+)?(e[-+]?\d+)?|inf|nan)\Z")
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))

Column = tuple[str, str]
"""(header in the table, key in the row)"""

FREE_FORM = {
    "config",
    "originalConfig",
    "hparams",
    "hyperparameters",
    "metadata",
    "summaryMetrics",
    "avgMetrics",
    "batchMetrics",
    "resources",
    "states",
}
"""Keys whose values belong to the user, so their spelling is kept."""

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def show(kind: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints a list in the given format."""
    if kind in ("json", "yaml"):
        show_object(kind, [{key: row.get(key) for _, key in columns} for row in rows])
    elif kind == "csv":
        _csv(columns, rows)
    else:
        _table(Terminal.of(sys.stdout), columns, rows)


def _table(terminal: "Terminal", columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints a table. On a terminal that is too narrow, some columns are short, cut or left out."""
    found = [_column(terminal, header, key, rows) for header, key in columns]
    shown, hidden = (unfitted(found), []) if terminal.width is None else fit(found, terminal.width)
    if hidden:
        names = ", ".join(key.removeprefix("hparams.") for key in hidden[:MAX_NAMED])
        rest = f" and {len(hidden) - MAX_NAMED} more" if len(hidden) > MAX_NAMED else ""
        sys.stderr.write(f"the terminal is too narrow for {names}{rest}; --csv prints all columns\n")
    sys.stdout.write(_lines(shown))


def _column(terminal: "Terminal", header: str, key: str, rows: Sequence[Mapping[str, Any]]) -> ColumnCells:
    values = [row.get(key) for row in rows]
    cells = [terminal.cell(value) for value in values]
    short = [terminal.cell(value, short=True) for value in values]
    is_text = cells == short and not all(map(_is_number, cells))
    return ColumnCells(header, key, cells, short, is_text)


def show_fields(columns: Sequence[Column], row: Mapping[str, Any]) -> None:
    """Prints the fields of one object, one on each line; fields without a value are left out."""
    terminal = Terminal.of(sys.stdout)
    cells = [(title, cell) for title, key in columns if (cell := terminal.cell(row.get(key)))]
    indent = max((len(title) for title, _ in cells), default=0) + 2
    for title, cell in cells:
        sys.stdout.write(f"{title:<{indent}}{shortened(cell, terminal.width and terminal.width - indent)}\n")


class Terminal:
    """What the output is shown on: its width in columns, and whether people read it.

    A pipe or a file has no width: cells are neither shortened nor changed there.
    """

    def __init__(self, width: int | None, now: datetime | None = None) -> None:
        self.width = width
        self._now = now or datetime.now(UTC)

    @classmethod
    def of(cls, stream: TextIO) -> "Terminal":
        """Returns the terminal behind a stream."""
        if not stream.isatty():
            return cls(None)
        try:
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
        except (OSError, ValueError):
            columns = 0
        return cls(columns or DEFAULT_WIDTH)

    def cell(self, value: object, *, short: bool = False) -> str:
        """Returns the text of a cell. On a terminal, times are local and relative, or with ``short`` relative only.

        >>> Terminal(80, datetime(2026, 1, 1, 12, tzinfo=UTC)).cell("2026-01-01T09:00:00Z").endswith("(3h ago)")
        True
        >>> Terminal(None).cell("2026-01-01T09:00:00Z")
        '2026-01-01T09:00:00Z'
        """
        if self.width is not None and isinstance(value, str) and _TIME.match(value):
            try:
                return _local_time(datetime.fromisoformat(value), self._now, short=short)
            except ValueError:
                return _cell(value)
        return _cell(value)


def _local_time(time: datetime, now: datetime, *, short: bool) -> str:
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    seconds = (now - time).total_seconds()
    relative = f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"
    return relative if short else f"{time.astimezone():%Y-%m-%d %H:%M:%S} ({relative})"


def duration(seconds: float) -> str:
    """Returns a time span in its two largest units; seconds only below a minute.

    >>> duration(42), duration(245), duration(7500), duration(7200), duration(200000)
    ('42s', '4m', '2h 5m', '2h', '2d 7h')
    """
    left = int(seconds)
    parts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append((number, unit))
    if len(parts) > 1 and parts[1][1] == "s":
        parts = parts[:1]
    return " ".join(f"{number}{unit}" for number, unit in parts[:2] if number) or "0s"


def shortened(text: str, width: int | None) -> str:
    """Returns ``text`` in at most ``width`` columns, with an ellipsis if something is missing.

    >>> shortened("hyperparameters", 8)
    'hyperpa…'
    """
    return text if width is None or len(text) <= width else f"{text[: max(0, width - 1)]}…"


def show_object(kind: str, value: object) -> None:
    """Prints one object as JSON or YAML."""
    if kind == "yaml":
        import yaml

        sys.stdout.write(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
    else:
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _lines(columns: Sequence[FittedColumn]) -> str:
    """Returns a table with a header, a rule and columns that are separated by bars. Numbers are at the right.

    >>> print(_lines([FittedColumn("ID", ["1", "22"], 4), FittedColumn("Name", ["a", "b"], 6)]), end="")
       ID | Name
    ------+--------
        1 | a
       22 | b
    """
    right = [bool(each.cells) and all(map(_is_number, each.cells)) for each in columns]
    widths = [each.width for each in columns]
    lines = [_line([each.header for each in columns], widths, right), "+".join("-" * (each + 2) for each in widths)]
    lines += [_line(row, widths, right) for row in zip(*(each.cells for each in columns), strict=True)]
    return "\n".join(lines) + "\n"


@overload
def snake(value: dict[str, Any]) -> dict[str, Any]: ...
@overload
def snake(value: object) -> object: ...
def snake(value: object) -> object:
    """Converts keys from camelCase to snake_case, except in FREE_FORM values.

    >>> snake({"numTrials": 1, "config": {"someKey": 2}})
    {'num_trials': 1, 'config': {'someKey': 2}}
    """
    if isinstance(value, dict):
        return {snake_key(key): part if key in FREE_FORM else snake(part) for key, part in value.items()}
    return [snake(part) for part in value] if isinstance(value, list) else value


def snake_key(key: str) -> str:
    """Converts ``numTrials`` to ``num_trials``."""
    return _HUMP.sub(r"_\1", key).lower()


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        f" {shortened(cell, width).rjust(width) if is_right else shortened(cell, width).ljust(width)} "
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    )
    return "|".join(padded).rstrip()


def _is_number(cell: str) -> bool:
    return cell == "" or _NUMBER.match(cell) is not None


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else " " for each in str(value))


def _csv(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([header for header, _ in columns])
    for row in rows:
        writer.writerow([_cell(row.get(key)) for _, key in columns])
