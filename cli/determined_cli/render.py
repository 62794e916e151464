"""Formats rows and objects as table, JSON, YAML or CSV on stdout."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO, overload

DEFAULT_WIDTH = 80
MIN_COLUMN = 8
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_UNITS = (("d", 86400), ("h", 3600), ("min", 60))

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
    """Prints a table. On a terminal that is too narrow, times are relative only, and the last columns are left out."""
    headers = [header for header, _ in columns]
    cells = [[terminal.cell(row.get(key)) for _, key in columns] for row in rows]
    if terminal.width is not None and sum(_widths(headers, cells)) + 3 * len(columns) - 1 > terminal.width:
        cells = [[terminal.cell(row.get(key), short=True) for _, key in columns] for row in rows]
        number = _fitting(_widths(headers, cells), terminal.width)
        if number < len(columns):
            hidden = ", ".join(key for _, key in columns[number:])
            sys.stderr.write(f"the terminal is too narrow for {hidden}; --csv and --json print all columns\n")
        headers, cells = headers[:number], [row[:number] for row in cells]
    sys.stdout.write(table(headers, cells, terminal.width))


def _widths(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max([len(header) + 2, *(len(row[index]) for row in rows)]) for index, header in enumerate(headers)]


def _fitting(widths: Sequence[int], room: int) -> int:
    """Returns how many of the first columns fit if each is at least :data:`MIN_COLUMN` wide, or as wide as its cells.

    >>> _fitting([4, 60, 20, 20], 30)
    3
    """
    used = -1
    for number, width in enumerate(widths):
        used += min(width, MIN_COLUMN) + 3
        if used > room:
            return max(1, number)
    return len(widths)


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

        >>> Terminal(80, datetime(2026, 1, 1, 12, tzinfo=UTC)).cell("2026-01-01T09:00:00Z").endswith("(3 h ago)")
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
    unit, size = next(((unit, size) for unit, size in _UNITS if abs(seconds) >= size), ("s", 1))
    number = int(abs(seconds) / size)
    relative = f"{number} {unit} ago" if seconds >= 0 else f"in {number} {unit}"
    return relative if short else f"{time.astimezone():%Y-%m-%d %H:%M:%S} ({relative})"


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


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Returns a table with a header, a rule and columns that are separated by bars, in at most ``width`` columns.

    Columns that are too wide are shortened, the widest first.

    >>> print(table(["ID", "Name"], [["1", "a"], ["22", "b"]]), end="")
       ID | Name
    ------+--------
        1 | a
       22 | b
    """
    widths = _widths(headers, rows)
    right = [bool(rows) and all(_is_number(row[index]) for row in rows) for index in range(len(headers))]
    if width is not None:
        widths = _fitted(widths, width - 3 * len(widths) + 1)
    lines = [_line(headers, widths, right), "+".join("-" * (each + 2) for each in widths)]
    lines += [_line(row, widths, right) for row in rows]
    return "\n".join(lines) + "\n"


def _fitted(widths: Sequence[int], room: int) -> list[int]:
    """Returns column widths whose sum is at most ``room``, if every column can have :data:`MIN_COLUMN`.

    >>> _fitted([40, 4, 20], 44)
    [20, 4, 20]
    """
    found = list(widths)
    while sum(found) > room and max(found) > MIN_COLUMN:
        widest = max(found)
        next_width = max([MIN_COLUMN, *(each for each in found if each < widest)])
        number = found.count(widest)
        surplus = sum(found) - room
        lower = max(next_width, widest - -(-surplus // number))
        found = [lower if each == widest else each for each in found]
    return found


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
    return cell == "" or cell.replace(".", "", 1).lstrip("-").isdigit()


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
