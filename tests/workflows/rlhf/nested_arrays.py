"""Random nested dictionaries of arrays with a common first dimension, and their comparison."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "<f8", ">f4", "complex64", "<U3", "S2", "<M8[s]")
NAMES = st.sampled_from(["a", "b", "obs", "policy_state", "self", "values", "x.y", "é"])


def arrays(rows: int) -> st.SearchStrategy[Any]:
    def make(dtype: str, rest: list[int], seed: int) -> Any:
        words = np.random.default_rng(seed).integers(0, 50, (rows, *rest))
        return words.astype(np.int64).astype(dtype)

    return st.builds(make, st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=2), st.integers(0, 99))


def nested(rows: int = 7) -> st.SearchStrategy[dict[str, Any]]:
    leaves = st.one_of(arrays(rows), st.none())
    inner = st.dictionaries(NAMES, leaves, min_size=1, max_size=3)
    return st.dictionaries(NAMES, st.one_of(leaves, inner), min_size=1, max_size=4)


def apply(values: Any, function: Any) -> Any:
    if isinstance(values, dict):
        return {name: apply(value, function) for name, value in values.items()}
    return None if values is None else function(values)


def assert_same(left: Any, right: Any) -> None:
    if isinstance(right, dict):
        assert sorted(left) == sorted(right)
        for name, value in right.items():
            assert_same(left[name], value)
    elif right is None:
        assert left is None
    else:
        assert (type(left), left.dtype, left.shape) == (type(right), right.dtype, right.shape)
        assert left.tobytes() == right.tobytes()
