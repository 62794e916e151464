"""Formats rows and objects as table, JSON, YAML or CSV on stdout."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, overload

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
        cells = [[_cell(row.get(key)) for _, key in columns] for row in rows]
        sys.stdout.write(table([header for header, _ in columns], cells))


def show_object(kind: str, value: object) -> None:
    """Prints one object as JSON or YAML."""
    if kind == "yaml":
        import yaml

        sys.stdout.write(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
    else:
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table with a header, a rule and columns that are separated by bars.

    >>> print(table(["ID", "Name"], [["1", "a"], ["22", "b"]]), end="")
       ID | Name
    ------+--------
        1 | a
       22 | b
    """
    widths = [max([len(header) + 2, *(len(row[index]) for row in rows)]) for index, header in enumerate(headers)]
    right = [bool(rows) and all(_is_number(row[index]) for row in rows) for index in range(len(headers))]
    lines = [_line(headers, widths, right), "+".join("-" * (width + 2) for width in widths)]
    lines += [_line(row, widths, right) for row in rows]
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
        f" {cell.rjust(width) if is_right else cell.ljust(width)} "
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
