"""Filters and orders from requests: which are read, and which are refused."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.errors import BadRequest
from determined_master.experiment_index import filters
from determined_master.experiment_index.column_names import ColumnName, readings
from determined_master.experiment_index.filters import MAX_FIELDS, OPERATORS, WITHOUT_VALUE, Field, Group, SortKey

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
VALUES = WORDS | st.booleans() | st.floats(allow_nan=False)


def a_field() -> st.SearchStrategy[Field]:
    with_value = st.builds(Field, WORDS, st.sampled_from([o for o in OPERATORS if o not in WITHOUT_VALUE]), VALUES)
    return with_value | st.builds(Field, WORDS, st.sampled_from(WITHOUT_VALUE))


def a_group() -> st.SearchStrategy[Group]:
    def grown(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.builds(Group, st.sampled_from(["and", "or"]), st.lists(children, max_size=3).map(tuple))

    return grown(st.recursive(a_field(), grown, max_leaves=12))


def spelled(node: Field | Group) -> dict[str, Any]:
    if isinstance(node, Field):
        return {"kind": "field", "columnName": node.column, "operator": node.operator, "value": node.value}
    return {"kind": "group", "conjunction": node.conjunction, "children": [spelled(c) for c in node.children]}


def depth(node: Field | Group) -> int:
    return 1 if isinstance(node, Field) else 1 + max((depth(c) for c in node.children), default=0)


@given(a_group(), st.booleans())
def test_a_spelled_filter_is_parsed_to_the_same_filter(group: Group, archived: bool):
    text = json.dumps({"filterGroup": spelled(group), "showArchived": archived})
    if depth(group) - 1 > filters.DEEPEST:
        return
    read = filters.parse(text)
    assert (read.group, read.show_archived) == (group, archived)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "children", "conjunction", "columnName", "operator", "value", "filterGroup"]),
            inner | st.sampled_from(["field", "group", "and", "=", "contains"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(ANYTHING.map(json.dumps) | st.text(max_size=30))
def test_any_json_is_a_filter_or_refused(text: str):
    with suppress(BadRequest):
        filters.parse(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 50_000, '{"filterGroup": {"kind": "group", "children": 1}}', '"' + "x" * 300_000]
)
def test_filters_that_are_too_large_or_malformed_are_refused(text: str):
    with pytest.raises(BadRequest):
        filters.parse(text)


def test_filters_with_too_many_fields_or_levels_are_refused():
    many = Group("or", (Field("name", "=", "x"),) * (MAX_FIELDS + 1))
    with pytest.raises(BadRequest, match="more than"):
        filters.parse(json.dumps({"filterGroup": spelled(many)}))
    deep = Group("and", ())
    for _ in range(filters.DEEPEST):
        deep = Group("and", (deep,))
    with pytest.raises(BadRequest, match="nested"):
        filters.parse(json.dumps({"filterGroup": spelled(deep)}))


@given(st.lists(st.tuples(WORDS, st.booleans()), max_size=5, unique_by=lambda pair: pair[0]))
def test_orders_are_read_as_they_were_spelled(order: list[tuple[str, bool]]):
    if any(word in column for column, _ in order for word in ("=asc", "=desc")):
        return
    text = ",".join(f"{column}={'desc' if descending else 'asc'}" for column, descending in order)
    assert filters.parse_sort(text) == [SortKey(*pair) for pair in order]


def test_column_names_may_contain_the_separators_of_orders():
    assert filters.parse_sort("training.a,b=c.last=desc,name=asc") == [
        SortKey("training.a,b=c.last", True),
        SortKey("name", False),
    ]


@pytest.mark.parametrize("text", ["name", "name=up", "name=asc,", "=asc", "name=asc,id"])
def test_malformed_orders_are_refused(text: str):
    if text == "name=asc,":
        assert filters.parse_sort(text) == [SortKey("name", False)]
        return
    with pytest.raises(BadRequest):
        filters.parse_sort(text)


@pytest.mark.parametrize(
    ("column", "kinds"),
    [
        ("hp.lr", [("hyperparameter", "hp.lr", "last")]),
        ("hp.x.last", [("hyperparameter", "hp.x.last", "last"), ("metric", "hp.x", "last")]),
        ("validation.a.b.max", [("metric", "validation.a.b", "max")]),
        ("validation.loss", []),
        ("nonsense", []),
        ("loss.last", []),
    ],
)
def test_a_column_name_has_these_readings(column: str, kinds: list[tuple[Any, str, Any]]):
    assert readings(column) == [ColumnName(column, *kind) for kind in kinds]
