"""Types by which a function of the dataflow says what it needs: models, data of functions, data of the dataset."""

import types
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from determined_workflows.rlhf.task.array_tree import NamedArray, from_dict

HANDLES = ("inference", "generate", "train_step", "evaluate")
"""What a function may ask of a model."""
Call = Callable[[str, str, NamedArray], "Future[Any]"]
"""Sends a call: name of the model, handle, inputs."""


class _Query:
    """Base of the queries: ``Query["name"]`` is an annotation that keeps the name."""

    def __class_getitem__(cls, name: str) -> types.GenericAlias:
        if not isinstance(name, str) or not name:
            raise TypeError(f"{cls.__name__} takes one name, as {cls.__name__}['name'], not {name!r}")
        return types.GenericAlias(cls, (name,))


class ModelQuery(_Query):
    """``ModelQuery["actor"]``: the model of this name.

    Calling it calls ``inference`` of the model's interface; ``generate``, ``train_step`` and ``evaluate`` call these.
    Each takes a NamedArray, waits for the workers of the model and returns what the interface returned.
    """

    def __init__(self, name: str, call: Call) -> None:
        self.name = name
        self._call = call

    def __call__(self, inputs: NamedArray) -> Any:  # noqa: ANN401
        return self._call(self.name, "inference", inputs).result()

    def generate(self, inputs: NamedArray) -> Any:  # noqa: ANN401
        """Calls ``generate`` of the interface."""
        return self._call(self.name, "generate", inputs).result()

    def train_step(self, inputs: NamedArray) -> Any:  # noqa: ANN401
        """Calls ``train_step`` of the interface."""
        return self._call(self.name, "train_step", inputs).result()

    def evaluate(self, inputs: NamedArray) -> Any:  # noqa: ANN401
        """Calls ``evaluate`` of the interface."""
        return self._call(self.name, "evaluate", inputs).result()


class DataQuery(_Query):
    """``DataQuery["seq"]``: the value that another function sets by ``commands.set_data("seq", …)``, or data of the
    dataset."""


class RawDataQuery(_Query):
    """``RawDataQuery["prompts"]``: an entry of the batch that the data workers give."""


class Store(Protocol):
    """Where the values of a step are kept."""

    def get(self, name: str) -> Any: ...  # noqa: ANN401

    def set(self, name: str, value: object) -> None: ...

    def log(self, values: Mapping[str, object]) -> None: ...


class Commands:
    """What a function of the dataflow may do besides calling models."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_data(self, name: str) -> Any:  # noqa: ANN401
        """Returns the value that another function sets under ``name``."""
        return self._store.get(name)

    def set_data(self, name: str, value: object) -> None:
        """Gives ``value`` to the functions that query ``name``. Each name is set by one function."""
        self._store.set(name, value)

    def build_model_inputs(self, metadata: Mapping[str, object] | None = None, **arrays: object) -> NamedArray:
        """Returns a NamedArray of ``arrays``, which all have the batch as their first dimension."""
        if not arrays:
            raise ValueError("build_model_inputs needs at least one array")
        inputs: NamedArray = from_dict(arrays, **(metadata or {}))
        return inputs

    def log(self, values: Mapping[str, object]) -> None:
        """Reports numbers as metrics of this step, as ``FUNCTION/KEY``."""
        self._store.log(values)
