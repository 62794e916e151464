"""The dataflow of a step: functions that call models, ordered by the data that they exchange.

Users' files do ``from api.ecs import *``; ``api/ecs.py`` of a project is a star import of this module.
"""

# No __all__: users take the queries from their star import of this module.
import graphlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from determined_workflows.rlhf.task.dataflow_run import run
from determined_workflows.rlhf.task.mock_run import DataflowError, Function, Needs, name_of, needs_of, place_of
from determined_workflows.rlhf.task.queries import (  # noqa: F401
    Call,
    Commands,
    DataQuery,
    ModelQuery,
    RawDataQuery,
)
from determined_workflows.rlhf.task.registry import unknown_name


class HasModelName(Protocol):
    """A configuration of a model worker."""

    model_name: str


Neighbours = Function | str | Sequence[Function | str] | None


class MasterWorkerECS:
    """Collects the functions of a step.

    Parameters:
        model_workers: the experiment's model workers; ``ModelQuery`` names their models.

    Example:
        >>> ecs = MasterWorkerECS(model_workers).add_systems([rollout, reward, train_actor])
    """

    def __init__(self, model_workers: Iterable[HasModelName]) -> None:
        workers = list(model_workers)
        for worker in workers:
            if not hasattr(worker, "model_name"):
                raise DataflowError(f"MasterWorkerECS takes the list of model workers; {worker!r:.200} is none")
        self.model_names = list(dict.fromkeys(worker.model_name for worker in workers))
        self.funcs: dict[str, Function] = {}
        self.edges: list[tuple[str, str]] = []

    def add_system(self, function: Function, before: Neighbours = None, after: Neighbours = None) -> "MasterWorkerECS":
        """Adds a function that runs ``before`` and ``after`` the functions given, besides what its data demands."""
        if not callable(function):
            raise DataflowError(f"{function!r} is no function: give the function itself")
        name = name_of(function)
        if self.funcs.get(name, function) is not function:
            raise DataflowError(
                f"two functions have the name {name!r}: {place_of(self.funcs[name])} and {place_of(function)}"
            )
        self.funcs[name] = function
        self.edges += [(name, later) for later in _names(before)]
        self.edges += [(earlier, name) for earlier in _names(after)]
        return self

    def add_systems(
        self, functions: Iterable[Function], before: Neighbours = None, after: Neighbours = None
    ) -> "MasterWorkerECS":
        """Adds several functions."""
        for function in functions:
            self.add_system(function, before, after)
        return self

    def build(self) -> "Dataflow":
        """Returns the dataflow. Raises DataflowError for cycles, unknown names and functions that cannot be run."""
        return Dataflow(self.funcs, self.edges, self.model_names)


class Dataflow:
    """Functions of a step with their dependencies.

    Attributes:
        model_names: models that functions may query.
        edges: pairs of functions ordered by ``before`` and ``after``.
        funcs: the functions by their names, in the order in which they were added.
        needs: what each of them reads, sets and calls.
        after: the functions that each waits for.
        levels: names in levels; each function's inputs come from earlier levels.
    """

    def __init__(self, funcs: Mapping[str, Function], edges: Iterable[tuple[str, str]], models: Sequence[str]) -> None:
        if not funcs:
            raise DataflowError("the dataflow has no functions: add them by add_systems([...])")
        self.funcs = dict(funcs)
        self.edges = list(edges)
        self.model_names = list(models)
        self.needs: dict[str, Needs] = {name: needs_of(function) for name, function in funcs.items()}
        self.raw_names = frozenset(name for needs in self.needs.values() for name in needs.raw)
        setters = self._setters()
        self._check_names(setters)
        reasons = self._reasons(setters)
        self.after: dict[str, set[str]] = {name: set() for name in self.funcs}
        for earlier, later in reasons:
            self.after[later].add(earlier)
        self._check_cycles(reasons)
        self._order_calls_of_one_model()
        self.levels = _levels(self.after)

    @property
    def calls(self) -> set[tuple[str, str]]:
        """Every model with every handle that a function calls."""
        return {call for needs in self.needs.values() for call in needs.calls}

    def run(self, batch: Mapping[str, object], call: Call) -> dict[str, object]:
        """Runs one step: each function as soon as those before it have ended. Returns the logged values.

        Parameters:
            batch: the data of the dataset by name, a dictionary or a NamedArray.
            call: sends a call to a model (name, handle, inputs) and returns a future of its result.

        Raises:
            whatever a function raised first; no further function starts after it.
        """
        return run(self, batch, call)

    def _setters(self) -> dict[str, str]:
        setters: dict[str, str] = {}
        for name, needs in self.needs.items():
            for data in sorted(needs.sets):
                if data in setters:
                    raise DataflowError(
                        f"the functions {setters[data]} and {name} ({place_of(self.funcs[name])}) both set {data!r}: "
                        "give one of the two another name"
                    )
                setters[data] = name
        return setters

    def _check_names(self, setters: Mapping[str, str]) -> None:
        for name, needs in self.needs.items():
            where = f"the function {name} ({place_of(self.funcs[name])})"
            for model in sorted(needs.models):
                if model not in self.model_names:
                    raise DataflowError(
                        f"{where} queries a model that no worker has: {unknown_name('model', model, self.model_names)}"
                    )
            for data in sorted(needs.reads):
                if data not in setters and data not in self.raw_names:
                    known = {*setters, *self.raw_names}
                    raise DataflowError(
                        f"{where} queries data that no function sets: {unknown_name('data', data, known)}; "
                        "data of the dataset is queried by RawDataQuery"
                    )

    def _reasons(self, setters: Mapping[str, str]) -> dict[tuple[str, str], str]:
        """Returns why one function runs after another, for each pair that has a reason."""
        reasons: dict[tuple[str, str], str] = {}
        for earlier, later in self.edges:
            for name in (earlier, later):
                if name not in self.funcs:
                    raise DataflowError(f"before or after: {unknown_name('function', name, self.funcs)}")
            reasons[earlier, later] = "by before or after"
        for name, needs in self.needs.items():
            for data in needs.reads & setters.keys():
                reasons[setters[data], name] = f"by {data!r}"
        return reasons

    def _check_cycles(self, reasons: Mapping[tuple[str, str], str]) -> None:
        try:
            graphlib.TopologicalSorter(self.after).prepare()
        except graphlib.CycleError as error:
            path = error.args[1]
            steps = [
                f"{later} after {earlier} ({reasons[earlier, later]})" for earlier, later in itertools.pairwise(path)
            ]
            raise DataflowError(f"the functions wait for each other in a circle: {', '.join(steps)}") from None

    def _order_calls_of_one_model(self) -> None:
        """Functions with a model in common run in the order in which they were added unless their data orders them.

        Otherwise the order of two calls, and so the random stream of the model, would depend on the time.
        """
        names = list(self.funcs)
        for index, later in enumerate(names):
            for earlier in names[:index]:
                if not self.needs[earlier].models & self.needs[later].models:
                    continue
                if earlier not in _ancestors(self.after, later) and later not in _ancestors(self.after, earlier):
                    self.after[later].add(earlier)


def _names(neighbours: Neighbours) -> list[str]:
    if neighbours is None:
        return []
    some = [neighbours] if isinstance(neighbours, str) or callable(neighbours) else list(neighbours)
    return [one if isinstance(one, str) else name_of(one) for one in some]


def _ancestors(after: Mapping[str, set[str]], name: str) -> set[str]:
    ancestors: set[str] = set()
    waiting = [name]
    while waiting:
        new = after[waiting.pop()] - ancestors
        ancestors |= new
        waiting += new
    return ancestors


def _levels(after: Mapping[str, set[str]]) -> list[list[str]]:
    sorter = graphlib.TopologicalSorter(after)
    sorter.prepare()
    order = list(after)
    levels = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=order.index)
        levels.append(ready)
        sorter.done(*ready)
    return levels
