"""Tables of transitions, and their reverse: the states from which a state can be reached."""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

S = TypeVar("S", bound=Enum)

Table = Mapping[S, frozenset[S]]


def reverse(table: Mapping[S, frozenset[S]]) -> dict[S, frozenset[S]]:
    """Returns, for each state, the states that may precede it."""
    return {to: frozenset(start for start, ends in table.items() if to in ends) for to in table}
