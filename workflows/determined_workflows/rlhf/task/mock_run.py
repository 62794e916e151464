"""Finds what a function of the dataflow reads, sets and calls: by its annotations and a run on placeholders."""

import dataclasses
import functools
import inspect
import traceback
import types
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from determined_workflows.rlhf.task.array_tree import NamedArray
from determined_workflows.rlhf.task.placeholder import Placeholder
from determined_workflows.rlhf.task.queries import Commands, DataQuery, ModelQuery, RawDataQuery

Function = Callable[..., object]
QUERIES = (ModelQuery, DataQuery, RawDataQuery)


class DataflowError(ValueError):
    """A dataflow that cannot run. Its text is a sentence that names the functions and what to change."""


@dataclasses.dataclass
class Needs:
    """What one function of the dataflow needs and gives.

    Parameters:
        arguments: its parameters: the query's class, or Commands, and the name.
        reads: names of data of other functions.
        raw: names of data of the dataset.
        sets: names that it gives.
        calls: models and handles that it calls.
    """

    arguments: dict[str, tuple[type, str]] = dataclasses.field(default_factory=dict)
    reads: set[str] = dataclasses.field(default_factory=set)
    raw: set[str] = dataclasses.field(default_factory=set)
    sets: set[str] = dataclasses.field(default_factory=set)
    calls: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    @property
    def models(self) -> set[str]:
        """The models that it queries, called in the mock run or not."""
        return {name for kind, name in self.arguments.values() if kind is ModelQuery}

    # What Commands ask of a store:

    def get(self, name: str) -> Placeholder:
        self.reads.add(name)
        return Placeholder()

    def set(self, name: str, value: object) -> None:
        self.sets.add(name)

    def log(self, values: Mapping[str, object]) -> None: ...

    def call(self, model: str, handle: str, inputs: NamedArray) -> "Future[Any]":
        self.calls.add((model, handle))
        reply: Future[Any] = Future()
        reply.set_result(Placeholder())
        return reply


def name_of(function: Function) -> str:
    """Returns the name of a function, or of the function of a partial."""
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def place_of(function: Function) -> str:
    """Returns ``file:line`` of a function, or its module."""
    inner = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    code = getattr(inner, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else str(getattr(inner, "__module__", "?"))


def needs_of(function: Function) -> Needs:
    """Returns what ``function`` needs. Raises DataflowError if its parameters are no queries or the mock run fails."""
    needs = Needs(arguments=_arguments(function))
    for kind, name in needs.arguments.values():
        if kind is DataQuery:
            needs.reads.add(name)
        elif kind is RawDataQuery:
            needs.raw.add(name)
    commands = Commands(needs)
    values = {
        parameter: commands
        if kind is Commands
        else ModelQuery(name, needs.call)
        if kind is ModelQuery
        else Placeholder()
        for parameter, (kind, name) in needs.arguments.items()
    }
    try:
        function(**values)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == place_of(function).rpartition(":")[0]]
        frame = (own or frames)[-1]
        raise DataflowError(
            f"the function {name_of(function)} ({place_of(function)}) failed on stand-ins for its data, by which its "
            f"inputs are found: {type(error).__name__}: {error} ({frame.filename}:{frame.lineno}); "
            "a function of the dataflow passes data between models: compute in a model interface"
        ) from error
    return needs


def _arguments(function: Function) -> dict[str, tuple[type, str]]:
    where = f"{name_of(function)} ({place_of(function)})"
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except (NameError, TypeError, ValueError, SyntaxError) as error:
        raise DataflowError(f"the annotations of the function {where} cannot be read: {error}") from error
    arguments: dict[str, tuple[type, str]] = {}
    for parameter in parameters.values():
        hint = parameter.annotation
        if hint is Commands:
            arguments[parameter.name] = (Commands, "")
        elif isinstance(hint, types.GenericAlias) and hint.__origin__ in QUERIES:
            arguments[parameter.name] = (hint.__origin__, hint.__args__[0])
        elif parameter.default is inspect.Parameter.empty and parameter.kind not in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        ):
            raise DataflowError(
                f"the parameter {parameter.name!r} of the function {where} is no query: annotate it as Commands, "
                "ModelQuery['model'], DataQuery['name'] or RawDataQuery['name']"
            )
    return arguments
