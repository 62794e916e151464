"""A stand-in for data and for replies of models while a function is run to see what it needs."""

from collections.abc import Iterator
from typing import Any


class Placeholder:
    """A value of which nothing is known: each operation on it gives another placeholder."""

    def __getattr__(self, name: str) -> "Placeholder":
        if name.startswith("__"):  # copy, pickle and numpy look for protocols by such names
            raise AttributeError(name)
        return Placeholder()

    def __call__(self, *args: object, **kwargs: object) -> "Placeholder":
        return Placeholder()

    def __getitem__(self, key: object) -> "Placeholder":
        return Placeholder()

    def __setitem__(self, key: object, value: object) -> None: ...

    def __contains__(self, key: object) -> bool:
        return True

    def __iter__(self) -> Iterator["Placeholder"]:
        return iter(())

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    def __index__(self) -> int:
        return 1

    def __float__(self) -> float:
        return 1.0

    def __format__(self, form: str) -> str:
        return "placeholder"

    @classmethod
    def __torch_function__(cls, function: object, kinds: object, args: object = (), kwargs: object = None) -> Any:  # noqa: ANN401
        return Placeholder()

    def __array_function__(self, function: object, kinds: object, args: object, kwargs: object) -> Any:  # noqa: ANN401
        return Placeholder()

    def __array_ufunc__(self, function: object, method: str, *args: object, **kwargs: object) -> Any:  # noqa: ANN401
        return Placeholder()


def _operation(self: Placeholder, *others: object) -> Placeholder:
    return Placeholder()


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OTHERS = ("neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge")
for _name in (*_BINARY, *(f"r{name}" for name in _BINARY), *_OTHERS):
    setattr(Placeholder, f"__{_name}__", _operation)
