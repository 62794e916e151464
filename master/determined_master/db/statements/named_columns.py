"""Columns of a query by the names of the tuple that its rows become."""

from typing import Any, NamedTuple


def columns_of(row_type: type[NamedTuple], /, **columns: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Returns the columns in the order of the fields of ``row_type``, so that ``row_type._make(row)`` names each value.

    Names are compared as the query is built. A row itself is joined by position, which costs nothing. Raises TypeError
    for a field without a column and for a column without a field.

    >>> class Agent(NamedTuple):
    ...     id: str
    ...     pool: str
    >>> columns_of(Agent, pool="a.pool", id="a.id")
    ('a.id', 'a.pool')
    """
    if columns.keys() != set(row_type._fields):
        wrong = ", ".join(sorted(columns.keys() ^ set(row_type._fields)))
        raise TypeError(f"the columns of {row_type.__name__} do not match its fields: {wrong}")
    return tuple(columns[name] for name in row_type._fields)
