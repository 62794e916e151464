"""Columns of a query by the names of the tuple that its rows become."""

from typing import NamedTuple

import pytest

from determined_master.db.statements.named_columns import columns_of


class Agent(NamedTuple):
    id: str
    pool: str


def test_columns_have_the_order_of_the_fields_whatever_the_order_of_the_arguments() -> None:
    assert Agent(*columns_of(Agent, pool="default", id="a1")) == Agent("a1", "default")


@pytest.mark.parametrize("columns", [{"id": 1}, {"id": 1, "pool": 2, "name": 3}])
def test_a_missing_or_unknown_column_is_named(columns: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=r"columns of Agent do not match its fields: (pool|name)$"):
        columns_of(Agent, **columns)
