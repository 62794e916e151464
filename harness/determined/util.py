"""Functions that scripts import from ``determined.util``."""

import inspect
import itertools
import json
import math
import numbers
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from determined._not_included import without_attribute

__all__ = [
    "calculate_batch_sizes",
    "filter_duplicates",
    "force_create_symlink",
    "get_member_func",
    "has_param",
    "humanize_float",
    "is_numerical_scalar",
    "is_overridden",
    "json_encode",
    "merge_dicts",
]


def calculate_batch_sizes(hparams: dict[str, Any], slots_per_trial: int, trialname: str) -> tuple[int, int]:
    """Returns the batch size of one slot, and that of all slots together.

    Args:
        hparams: hyperparameters with ``global_batch_size``.
        slots_per_trial: number of slots; 0 counts as 1.
        trialname: name of the trial class, for the error.

    Raises:
        ValueError: there is no ``global_batch_size``, or it is smaller than the number of slots.

    Example:
        >>> calculate_batch_sizes({"global_batch_size": 65}, 2, "MyTrial")
        (32, 64)
    """
    slots = max(1, slots_per_trial)
    size = hparams.get("global_batch_size")
    if size is None:
        raise ValueError(f"{trialname} needs the hyperparameter global_batch_size")
    if int(size) < slots:
        raise ValueError(f"global_batch_size ({size}) is smaller than the number of slots ({slots})")
    return int(size) // slots, int(size) // slots * slots


def filter_duplicates(in_list: Iterable[Any], sorter: Callable[[list[Any]], list[Any]] = sorted) -> set[Any]:
    """Returns the items that occur more than once.

    Args:
        in_list: the items.
        sorter: orders them so that equal ones are neighbours.

    Example:
        >>> filter_duplicates([1, 2, 1])
        {1}
    """
    ordered = list(sorter(list(in_list)))
    return {item for before, item in itertools.pairwise(ordered) if before == item}


def force_create_symlink(src: str, dst: str) -> None:
    """Creates a link in place of the file or link that is there.

    Args:
        src: what the link leads to.
        dst: its path.

    Example:
        >>> force_create_symlink("weights-3", "newest")  # doctest: +SKIP
    """
    Path(dst).unlink(missing_ok=True)
    os.symlink(src, dst, target_is_directory=Path(src).is_dir())


def get_member_func(obj: Any, func_name: str) -> Any:  # noqa: ANN401  # any object and its method
    """Returns a method of an object, or None if it has none of this name.

    Args:
        obj: the object.
        func_name: name of the method.

    Example:
        >>> get_member_func([], "nothing") is None
        True
    """
    member = getattr(obj, func_name, None)
    return member if callable(member) else None


def has_param(fn: Callable[..., Any], name: str, pos: int | None = None) -> bool:
    """Returns True if a function takes a parameter of this name, or one at this place.

    Args:
        fn: the function.
        name: name of the parameter.
        pos: its place among the positional ones, from 0; None to go by the name alone.

    Example:
        >>> has_param(lambda batch, epoch: 0, "epoch"), has_param(lambda b: 0, "batch", pos=0)
        (True, True)
    """
    found = inspect.signature(fn).parameters
    if name in found or any(each.kind is each.VAR_KEYWORD for each in found.values()):
        return True
    positional = [each for each in found.values() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return pos is not None and pos < len(positional)


def humanize_float(n: float) -> float:
    """Returns a number with the digits that people read: none after the point from 100 on.

    Args:
        n: the number.

    Example:
        >>> humanize_float(1234.5), humanize_float(0.123456)
        (1234.0, 0.123)
    """
    if n == 0 or not math.isfinite(n):
        return n
    return float(math.floor(n)) if abs(n) >= 100 else float(f"{n:.3g}")


def is_numerical_scalar(n: Any) -> bool:  # noqa: ANN401  # any value
    """Returns True for one number, also of NumPy or a tensor with one element.

    Args:
        n: the value.

    Example:
        >>> is_numerical_scalar(3), is_numerical_scalar("3"), is_numerical_scalar([3])
        (True, False, False)
    """
    if isinstance(n, bool):
        return False
    shape = getattr(n, "shape", None)
    return isinstance(n, numbers.Number) or (shape is not None and math.prod(shape) == 1 and hasattr(n, "item"))


def is_overridden(full_method: Any, parent_class: Any) -> bool:  # noqa: ANN401  # a bound method and a class
    """Returns True if a method is not that of ``parent_class``.

    Args:
        full_method: a method of an object.
        parent_class: the class that defines it first.

    Example:
        >>> is_overridden({}.get, dict)
        False
    """
    name = full_method.__name__
    return getattr(type(full_method.__self__), name, None) is not getattr(parent_class, name, None)


def json_encode(obj: Any, indent: str | None = None, sort_keys: bool = False) -> str:  # noqa: ANN401  # any value
    """Returns a value as JSON; arrays become lists, and numbers of NumPy numbers.

    Args:
        obj: the value.
        indent: text that lines are indented with; None for one line.
        sort_keys: True to order the keys of objects.

    Raises:
        TypeError: the value has a part that JSON cannot hold.

    Example:
        >>> json_encode({"b": 1, "a": [2.5]}, sort_keys=True)
        '{"a": [2.5], "b": 1}'
    """
    return json.dumps(obj, indent=indent, sort_keys=sort_keys, default=_plain)


def merge_dicts(base_dict: dict[Any, Any], source_dict: dict[Any, Any]) -> dict[Any, Any]:
    """Returns a copy of a dictionary with the entries of another; dictionaries in both are merged as well.

    Args:
        base_dict: the dictionary.
        source_dict: its entries win.

    Example:
        >>> merge_dicts({"a": {"x": 1}, "b": 2}, {"a": {"y": 3}, "b": 4})
        {'a': {'x': 1, 'y': 3}, 'b': 4}
    """
    merged = dict(base_dict)
    for key, value in source_dict.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge_dicts(merged[key], value) if both else value
    return merged


def _plain(value: Any) -> Any:  # noqa: ANN401  # what json does not know
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} is not JSON: {value!r}")


def __getattr__(name: str) -> Any:  # noqa: ANN401  # it only raises
    raise without_attribute("util", name)
