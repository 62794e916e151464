"""Fits a table into a terminal: which columns are shown, in which width, with which header. Pure.

Nobody can use half an id, state or number, so those are never cut. What does not fit is left out in this order:
columns without a value, the dates of times (``2h 5m ago`` remains), the ends of texts and headers, and then columns
from the last one on, those of :data:`EXPENDABLE` first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MIN_TEXT = 8
"""Characters that remain of a text that is cut."""
MIN_NAME = 12
"""The same of a name, by which people know a row."""
SEPARATOR = 3
NAMES = frozenset({"name", "description", "reason", "outcome"})
KEPT = frozenset({"id", "uuid", "state", "searcher_metric", "searcher_metric_value"})
"""Keys of columns that are shown on every terminal; so are those that end in ``_id``."""
EXPENDABLE = frozenset(
    {"archived", "draining", "enabled", "labels", "priority", "resource_pool", "restarts", "type", "version", "weight"}
)
SHORT_HEADERS = {
    "# of Batches": "Batches",
    "Parent ID": "Parent",
    "Report Time": "Reported",
    "Resource Pool": "Pool",
    "Searcher Metric": "Metric",
    "Trial ID": "Trial",
    "Start Time": "Started",
    "End Time": "Ended",
}


@dataclass(frozen=True)
class ColumnCells:
    """A column: its header, the key of its values, and their texts, long and short. ``is_text``: it may be cut."""

    header: str
    key: str
    long: Sequence[str]
    short: Sequence[str]
    is_text: bool

    @property
    def is_kept(self) -> bool:
        return self.key in KEPT or self.key.endswith("_id")

    @property
    def is_empty(self) -> bool:
        return not any(self.long)


@dataclass(frozen=True)
class FittedColumn:
    """A column as it is shown."""

    header: str
    cells: Sequence[str]
    width: int


def unfitted(columns: Sequence[ColumnCells]) -> list[FittedColumn]:
    """Returns all columns, as wide as what is in them."""
    return [FittedColumn(each.header, each.long, max(len(each.header) + 2, _width(each.long))) for each in columns]


def fit(columns: Sequence[ColumnCells], width: int) -> tuple[list[FittedColumn], list[str]]:
    """Returns the columns that are shown, and the keys of those with values that are left out.

    >>> shown, hidden = fit([ColumnCells("ID", "id", ["1"], ["1"], False)], 80)
    >>> shown[0].width, hidden
    (4, [])
    """
    whole = unfitted(columns)
    if _sum(whole) <= width:
        return whole, []
    filled = [each for each in columns if each.is_kept or not each.is_empty]
    for is_short in (False, True):
        fitted = [_fitted(each, is_short=is_short) for each in filled]
        if _sum(fitted) <= width:
            return fitted, []
    shown = list(filled)
    while True:
        fitted = [_fitted(each, is_short=True) for each in shown]
        least = [_least(each, column) for each, column in zip(shown, fitted, strict=True)]
        over = sum(least) + SEPARATOR * len(least) - 1 - width
        droppable = [each for each in shown[1:] if not each.is_kept]
        if over <= 0 or not droppable:
            break
        expendable = [each for each in droppable if each.key in EXPENDABLE]
        shown.remove((expendable or droppable)[-1])
    hidden = [each.key for each in filled if each not in shown]
    return _widened(fitted, least, width), hidden


def _fitted(column: ColumnCells, *, is_short: bool) -> FittedColumn:
    header = SHORT_HEADERS.get(column.header, column.header) if is_short else column.header
    cells = column.short if is_short else column.long
    return FittedColumn(header, cells, max(len(header), _width(cells)))


def _least(column: ColumnCells, fitted: FittedColumn) -> int:
    """Returns the least width of a column. Headers are cut like texts."""
    if not column.is_text or column.is_kept:
        return max(min(len(fitted.header), MIN_TEXT), _width(fitted.cells))
    return min(fitted.width, MIN_NAME if column.key in NAMES else MIN_TEXT)


def _widened(columns: Sequence[FittedColumn], least: Sequence[int], width: int) -> list[FittedColumn]:
    """Gives what is left of the width to the columns that are cut, the narrowest first."""
    widths = list(least)
    left = width - sum(widths) - SEPARATOR * len(widths) + 1
    while left > 0:
        cut = [index for index, each in enumerate(columns) if widths[index] < each.width]
        if not cut:
            break
        narrowest = min(cut, key=lambda index: widths[index])
        widths[narrowest] += 1
        left -= 1
    return [FittedColumn(each.header, each.cells, given) for each, given in zip(columns, widths, strict=True)]


def _width(cells: Sequence[str]) -> int:
    return max(map(len, cells), default=0)


def _sum(columns: Sequence[FittedColumn]) -> int:
    return sum(each.width for each in columns) + SEPARATOR * len(columns) - 1
