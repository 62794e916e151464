"""The class NamedArray: numpy arrays or torch tensors by names, nested, and functions of them.

``named_array`` is the module that users import: it has all of this one, and the codecs.
"""

# No __all__: users import functions and the class from a star import of this module.
import itertools
import types
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any

import numpy as np

Leaf = Any
"""A numpy array or number, a torch tensor, a Python number or text, or None."""
SCALARS = (bool, int, float, str)
"""Values without rows: an index leaves them as they are."""


class NamedArray:
    """Named arrays with a common first dimension. Fields are sorted by name; a field may be None or a NamedArray.

    ``x["a"]`` and ``x.a`` are a field; any other index is applied to each array, and the rest stays.
    ``len(x)`` is the number of fields, ``x.length()`` the first dimension; iteration gives the fields' values.

    Raises:
        KeyError: metadata has the name of a field.

    Example:
        >>> x = NamedArray(a=np.zeros((4, 2)), b=np.arange(4))
        >>> x[:2].b
        array([0, 1])
        >>> x.length(), len(x)
        (4, 2)
    """

    __slots__ = ("_fields", "_metadata")
    _fields: dict[str, Leaf]
    _metadata: dict[str, Any]

    def __init__(self, /, **fields: Leaf) -> None:
        object.__setattr__(self, "_fields", {name: fields[name] for name in sorted(fields)})
        object.__setattr__(self, "_metadata", {})

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What was registered beside the fields, read only. It is not sliced."""
        return types.MappingProxyType(self._metadata)

    def register_metadata(self, /, **metadata: Any) -> None:  # noqa: ANN401
        """Adds or replaces metadata. Raises KeyError for the name of a field."""
        for name in metadata:
            if name in self._fields:
                raise KeyError(f"metadata cannot have the name of the field {name!r}")
        self._metadata.update(metadata)

    def pop_metadata(self, name: str) -> Any:  # noqa: ANN401
        """Removes and returns metadata. Raises KeyError if there is none of this name."""
        return self._metadata.pop(name)

    def clear_metadata(self) -> None:
        """Removes all metadata."""
        self._metadata.clear()

    def keys(self) -> KeysView[str]:
        """Returns the names in order."""
        return self._fields.keys()

    def values(self) -> ValuesView[Leaf]:
        """Returns the fields in the order of their names."""
        return self._fields.values()

    def items(self) -> ItemsView[str, Leaf]:
        """Returns names and fields."""
        return self._fields.items()

    def __getattr__(self, name: str) -> Leaf:
        if name in NamedArray.__slots__:  # not yet set, while a copy is made
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"no field {name!r}: this NamedArray has {', '.join(self._fields)}") from None

    def __setattr__(self, name: str, value: Leaf) -> None:
        self._set(name, value)

    def __getitem__(self, where: Any) -> Any:  # noqa: ANN401
        if isinstance(where, str):
            if where not in self._fields:
                raise KeyError(f"no field {where!r}: this NamedArray has {', '.join(self._fields)}")
            return self._fields[where]
        return recursive_apply(self, lambda leaf: leaf if isinstance(leaf, SCALARS) else leaf[where])

    def __setitem__(self, where: Any, value: Any) -> None:  # noqa: ANN401
        """Sets a field by its name. Any other index sets a part of each field to the field of ``value``, or to it."""
        if isinstance(where, str):
            self._set(where, value)
            return
        if isinstance(value, NamedArray) and value.keys() != self.keys():
            raise KeyError(f"fields {', '.join(value.keys())} cannot be put into {', '.join(self.keys())}")
        for name, field in self._fields.items():
            if field is not None and not isinstance(field, SCALARS):
                field[where] = value[name] if isinstance(value, NamedArray) else value

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self._fields.values())

    def length(self, dim: int = 0) -> int:
        """Returns the size of a dimension, which all fields share. Raises ValueError if they do not."""
        shapes = {name: tuple(leaf.shape) for name, leaf in flatten(self) if getattr(leaf, "shape", ())}
        sizes = {int(shape[dim]) if -len(shape) <= dim < len(shape) else -1 for shape in shapes.values()}
        if len(sizes) != 1 or -1 in sizes:
            raise ValueError(f"the arrays have no common size of dimension {dim}: {shapes}")
        return sizes.pop()

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a dictionary, nested ones as dictionaries in it."""
        return {name: leaf.to_dict() if isinstance(leaf, NamedArray) else leaf for name, leaf in self._fields.items()}

    def size(self) -> int:
        """Returns the number of bytes of all arrays."""
        return sum(int(getattr(leaf, "nbytes", 0)) for _, leaf in flatten(self))

    def average_of(self, field: str, ignore_negative: bool = True) -> float | None:
        """Returns the mean of a field, or None if it has no value. ``ignore_negative`` leaves negative ones out."""
        values = self._numbers(field, ignore_negative)
        return float(values.mean()) if values.size else None

    def max_of(self, field: str, ignore_negative: bool = True) -> float | None:
        """Returns the largest value of a field; see ``average_of``."""
        values = self._numbers(field, ignore_negative)
        return float(values.max()) if values.size else None

    def min_of(self, field: str, ignore_negative: bool = True) -> float | None:
        """Returns the smallest value of a field; see ``average_of``."""
        values = self._numbers(field, ignore_negative)
        return float(values.min()) if values.size else None

    def unique_of(self, field: str, exclude_values: Sequence[Any] = (None,)) -> Any:  # noqa: ANN401
        """Returns the only value of a field besides ``exclude_values``, or None if there is none or more than one."""
        values = [v for v in np.unique(_as_numpy(self[field])).tolist() if v not in exclude_values]
        return values[0] if len(values) == 1 else None

    def __repr__(self) -> str:
        inner = [f"{name}={_brief(leaf)}" for name, leaf in self._fields.items()]
        if self._metadata:
            inner.append(f"metadata={self._metadata!r}")
        return f"NamedArray({', '.join(inner)})"

    def __getstate__(self) -> tuple[dict[str, Leaf], dict[str, Any]]:
        return self._fields, self._metadata

    def __setstate__(self, state: tuple[dict[str, Leaf], dict[str, Any]]) -> None:
        object.__setattr__(self, "_fields", state[0])
        object.__setattr__(self, "_metadata", state[1])

    def _set(self, name: str, value: Leaf) -> None:
        if name in self._metadata:
            raise KeyError(f"a field cannot have the name of the metadata {name!r}")
        is_new = name not in self._fields
        self._fields[name] = from_dict(value) if isinstance(value, Mapping) else value
        if is_new:
            for other in sorted(self._fields):
                self._fields[other] = self._fields.pop(other)

    def _numbers(self, field: str, ignore_negative: bool) -> "np.ndarray[Any, Any]":
        values = _as_numpy(self[field]).astype(float).reshape(-1)
        return values[values >= 0] if ignore_negative else values


def from_dict(values: Mapping[str, Any] | None, /, **metadata: Any) -> Any:  # noqa: ANN401
    """Returns a NamedArray of a dictionary, nested ones included; None for None and for an empty dictionary.

    Example:
        >>> from_dict({"obs": {"x": np.zeros(3)}, "reward": np.ones(3)}, epoch=1).obs.x
        array([0., 0., 0.])
    """
    if not values:
        return None
    for name in values:
        if not isinstance(name, str):
            raise TypeError(f"names of fields are texts, not {name!r}")
    made = NamedArray(**{name: from_dict(leaf) if isinstance(leaf, Mapping) else leaf for name, leaf in values.items()})
    made.register_metadata(**metadata)
    return made


def recursive_apply(x: Any, function: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """Returns a NamedArray with ``function`` of each field; None stays None, metadata is kept.

    Example:
        >>> recursive_apply(x, lambda leaf: torch.from_numpy(leaf).to("cuda"))
    """
    if x is None:
        return None
    if not isinstance(x, NamedArray):
        return function(x)
    made = NamedArray(**{name: recursive_apply(leaf, function) for name, leaf in x.items()})
    made.register_metadata(**x.metadata)
    return made


def recursive_aggregate(xs: Sequence[Any], function: Callable[[list[Any]], Any]) -> Any:  # noqa: ANN401
    """Returns a NamedArray with ``function`` of the list of each field of ``xs``, which have the same fields.

    A field that is None in all stays None; metadata is that of the first.

    Raises:
        ValueError: ``xs`` is empty, or fields differ.

    Example:
        >>> recursive_aggregate([first, second], np.concatenate)
    """
    if not xs:
        raise ValueError("nothing to aggregate: the list is empty")
    first = xs[0]
    if all(x is None for x in xs):
        return None
    if not isinstance(first, NamedArray):
        if any(x is None or isinstance(x, NamedArray) for x in xs):
            raise ValueError("a field is an array in some and None or a NamedArray in others")
        return function(list(xs))
    for x in xs:
        if not isinstance(x, NamedArray) or x.keys() != first.keys():
            raise ValueError(f"fields differ: {_brief(first)} and {_brief(x)}")
    made = NamedArray(**{name: recursive_aggregate([x[name] for x in xs], function) for name in first.keys()})  # noqa: SIM118
    made.register_metadata(**first.metadata)
    return made


def array_like(x: Any, default_value: Any = 0) -> Any:  # noqa: ANN401
    """Returns arrays of the same shapes and types, filled with ``default_value``."""
    return recursive_apply(x, lambda leaf: _filled_like(leaf, default_value))


def flatten(x: NamedArray) -> list[tuple[str, Leaf]]:
    """Returns names and fields; a nested one has the names of its parents with dots: ``obs.x``."""
    flat: list[tuple[str, Leaf]] = []
    for name, leaf in x.items():
        if isinstance(leaf, NamedArray):
            flat += [(f"{name}.{inner}", value) for inner, value in flatten(leaf)]
        else:
            flat.append((name, leaf))
    return flat


def from_flattened(entries: Sequence[tuple[str, Leaf]]) -> Any:  # noqa: ANN401
    """Returns the NamedArray that ``flatten`` gave these entries of."""
    nested: dict[str, Any] = {}
    for name, leaf in entries:
        *parents, last = name.split(".")
        inner = nested
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise ValueError(f"{name!r} is below {parent!r}, which is an array")
        inner[last] = leaf
    return from_dict(nested)


def merge(xs: Sequence[NamedArray]) -> NamedArray:
    """Returns one NamedArray with the fields and metadata of all; later ones win. Rows are joined by
    ``recursive_aggregate(xs, np.concatenate)``."""
    made = NamedArray(**{name: leaf for x in xs for name, leaf in x.items()})
    made.register_metadata(**{name: value for x in xs for name, value in x.metadata.items()})
    return made


def split(x: NamedArray, parts: int) -> list[NamedArray]:
    """Returns ``parts`` slices of the first dimension, as equal as possible: 7 rows in 3 parts are 2, 2 and 3.

    Raises:
        ValueError: there are fewer rows than parts.
    """
    rows = x.length(0)
    if not 1 <= parts <= rows:
        raise ValueError(f"{rows} rows cannot be split into {parts} parts")
    ends = [rows * part // parts for part in range(parts + 1)]
    return [x[start:end] for start, end in itertools.pairwise(ends)]


def _as_numpy(leaf: Leaf) -> "np.ndarray[Any, Any]":
    if hasattr(leaf, "detach"):
        leaf = leaf.detach().cpu()
        leaf = leaf.float() if str(leaf.dtype) == "torch.bfloat16" else leaf  # numpy has no such type
    return np.asarray(leaf)


def _filled_like(leaf: Leaf, value: Any) -> Leaf:  # noqa: ANN401
    if hasattr(leaf, "new_full"):
        return leaf.new_full(leaf.shape, value)
    return np.full_like(leaf, value)


def _brief(leaf: Leaf) -> str:
    if isinstance(leaf, NamedArray) or leaf is None or not hasattr(leaf, "shape"):
        return repr(leaf)
    return f"{leaf.dtype}{list(leaf.shape)}"
