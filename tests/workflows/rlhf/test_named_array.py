"""NamedArray against nested dictionaries: every operation, names, metadata and mistakes."""

import copy
import doctest
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.workflows.rlhf.nested_arrays import apply, assert_same, nested

from determined_workflows.rlhf.task.named_array import (
    NamedArray,
    array_like,
    flatten,
    from_dict,
    from_flattened,
    merge,
    recursive_aggregate,
    recursive_apply,
    split,
)


@given(nested())
def test_a_dictionary_comes_back_from_a_named_array(values: dict[str, Any]) -> None:
    x = from_dict(values)
    assert_same(x.to_dict(), values)
    assert list(x.keys()) == sorted(values)
    assert len(x) == len(values)


@given(nested(), st.one_of(st.integers(-7, 6), st.slices(7)))
def test_an_index_is_applied_to_each_array(values: dict[str, Any], where: Any) -> None:
    assert_same(from_dict(values)[where].to_dict(), apply(values, lambda array: array[where]))


@given(nested(), st.lists(st.booleans(), min_size=7, max_size=7))
def test_a_mask_sets_rows_of_each_array(values: dict[str, Any], rows: list[bool]) -> None:
    x, mask = from_dict(copy.deepcopy(values)), np.array(rows)
    x[mask] = array_like(x[mask], 1)

    def expected(array: Any) -> Any:
        array = array.copy()
        array[mask] = np.full_like(array[mask], 1)
        return array

    assert_same(x.to_dict(), apply(values, expected))


@given(nested(), st.integers(1, 7))
def test_parts_of_a_split_are_equal_and_join_to_the_whole(values: dict[str, Any], parts: int) -> None:
    values["rows"] = np.arange(7)
    pieces = split(from_dict(values), parts)
    sizes = [piece.rows.shape[0] for piece in pieces]
    assert max(sizes) - min(sizes) <= 1
    assert_same(
        recursive_aggregate(pieces, np.concatenate).to_dict(), apply(values, lambda array: np.concatenate([array]))
    )


@given(nested().filter(lambda values: not any("." in name for name in _names(values))))
def test_flattened_entries_build_the_same_array(values: dict[str, Any]) -> None:
    entries = flatten(from_dict(values))
    assert_same(from_flattened(entries).to_dict(), values)
    assert [name for name, _ in entries] == sorted(name for name, _ in entries)


@given(nested(), nested())
def test_later_fields_win_in_a_merge(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert_same(merge([from_dict(first), from_dict(second)]).to_dict(), {**first, **second})


@given(nested())
def test_apply_keeps_none_and_metadata(values: dict[str, Any]) -> None:
    x = recursive_apply(from_dict(values, epoch=3), lambda array: array.shape)
    assert x.to_dict() == apply(values, lambda array: array.shape)
    assert dict(x.metadata) == {"epoch": 3}


def _names(values: dict[str, Any]) -> set[str]:
    return set(values) | {name for value in values.values() if isinstance(value, dict) for name in value}


def test_seven_rows_in_three_parts_are_two_two_and_three() -> None:
    assert [part.length() for part in split(NamedArray(a=np.arange(7)), 3)] == [2, 2, 3]


def test_more_parts_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rows cannot be split into 3"):
        split(NamedArray(a=np.arange(2)), 3)


def test_an_empty_dictionary_is_none() -> None:
    assert from_dict({}) is None
    assert from_dict(None) is None


def test_a_field_that_is_set_twice_appears_once_in_order() -> None:
    x = NamedArray(b=np.zeros(1))
    x["a"] = np.ones(1)
    x["b"] = np.ones(1)
    x.a = np.zeros(1)
    assert list(x.keys()) == ["a", "b"]
    assert [leaf.tolist() for leaf in x] == [[0.0], [1.0]]


def test_metadata_and_fields_do_not_share_names() -> None:
    x = from_dict({"a": np.zeros(1)}, step=1)
    with pytest.raises(KeyError, match="name of the field 'a'"):
        x.register_metadata(a=1)
    with pytest.raises(KeyError, match="name of the metadata 'step'"):
        x["step"] = np.zeros(1)
    with pytest.raises(KeyError, match="name of the field"):
        from_dict({"a": np.zeros(1)}, a=1)
    assert x.pop_metadata("step") == 1
    x.register_metadata(more=2)
    x.clear_metadata()
    assert not x.metadata


def test_a_missing_field_is_said_with_the_names_there_are() -> None:
    x = NamedArray(a=np.zeros(1), b=None)
    with pytest.raises(KeyError, match="no field 'c': this NamedArray has a, b"):
        x["c"]
    with pytest.raises(AttributeError, match="has a, b"):
        _ = x.c
    assert "a" in x
    assert "c" not in x


def test_fields_with_different_numbers_of_rows_have_no_common_length() -> None:
    with pytest.raises(ValueError, match="no common size"):
        NamedArray(a=np.zeros(2), b=np.zeros(3)).length()
    with pytest.raises(ValueError, match="no common size of dimension 1"):
        NamedArray(a=np.zeros((2, 2)), b=np.zeros(2)).length(1)


def test_fields_that_differ_are_not_aggregated() -> None:
    with pytest.raises(ValueError, match="fields differ"):
        recursive_aggregate([NamedArray(a=np.zeros(1)), NamedArray(b=np.zeros(1))], np.concatenate)
    with pytest.raises(ValueError, match="None or a NamedArray"):
        recursive_aggregate([NamedArray(a=np.zeros(1)), NamedArray(a=None)], np.concatenate)


def test_statistics_of_a_field_leave_negative_values_out() -> None:
    x = NamedArray(a=np.array([-1.0, 2.0, 4.0]), b=torch.tensor([3.0, 3.0], dtype=torch.bfloat16), c=np.array([-1]))
    assert (x.average_of("a"), x.max_of("a"), x.min_of("a")) == (3.0, 4.0, 2.0)
    assert x.min_of("a", ignore_negative=False) == -1.0
    assert x.average_of("c") is None
    assert x.unique_of("b") == 3.0
    assert x.unique_of("a") is None
    assert x.unique_of("a", exclude_values=(-1.0, 2.0)) == 4.0


def test_tensors_are_sliced_and_filled_like_arrays() -> None:
    x = NamedArray(a=torch.arange(6).reshape(3, 2), scale=2.0)
    assert x[1:].a.tolist() == [[2, 3], [4, 5]]
    assert x[1:].scale == 2.0
    assert array_like(NamedArray(a=x.a), 7).a.tolist() == [[7, 7]] * 3
    assert x.size() == 48


def test_a_copy_and_a_pickle_have_fields_and_metadata() -> None:
    x = from_dict({"a": np.arange(3), "b": {"c": None}}, step=[1])
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert_same(copied.to_dict(), x.to_dict())
        assert dict(copied.metadata) == {"step": [1]}
    assert repr(x) == "NamedArray(a=int64[3], b=NamedArray(c=None), metadata={'step': [1]})"


@pytest.mark.parametrize("documented", [NamedArray, from_dict])
def test_the_examples_of_the_docstrings_are_true(documented: Any) -> None:
    names = {"np": np, "NamedArray": NamedArray, "from_dict": from_dict}
    (example,) = doctest.DocTestFinder(recurse=False).find(documented, globs=names)
    assert len(example.examples) >= 1
    assert doctest.DocTestRunner().run(example).failed == 0
