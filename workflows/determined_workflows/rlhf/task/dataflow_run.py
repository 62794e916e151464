"""Runs the functions of a step in threads: each starts as soon as the functions that it waits for have ended."""

import graphlib
import queue
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from determined_workflows.rlhf.task.mock_run import DataflowError, Function, Needs
from determined_workflows.rlhf.task.queries import Call, Commands, DataQuery, ModelQuery


class OrderedFunctions(Protocol):
    """What a run needs of a dataflow: its functions, what each needs, and which others each waits for."""

    funcs: dict[str, Function]
    needs: dict[str, Needs]
    after: dict[str, set[str]]
    raw_names: frozenset[str]


class StepData:
    """Data and logged values of one step, as one function sees them.

    What the mock run did not see (a branch that it did not take) is refused: the order of the functions does not take
    it into account, so the result would depend on which thread is faster.
    """

    def __init__(self, dataflow: OrderedFunctions, function: str, data: dict[str, object]) -> None:
        self._function = function
        self._data = data
        self._reads = dataflow.needs[function].reads
        self._foreign = {name for other, needs in dataflow.needs.items() if other != function for name in needs.sets}
        self.logged: dict[str, object] = {}

    def get(self, name: str) -> Any:  # noqa: ANN401
        if name not in self._reads:
            raise DataflowError(
                f"{self._function} reads {name!r} in some steps only: give it a parameter with DataQuery[{name!r}]"
            )
        if name not in self._data:
            raise DataflowError(f"{self._function} reads {name!r}, which was not set in this step")
        return self._data[name]

    def set(self, name: str, value: object) -> None:
        if name in self._foreign:
            raise DataflowError(f"{self._function} sets {name!r}, which another function sets: choose another name")
        self._data[name] = value

    def log(self, values: Mapping[str, object]) -> None:
        for key, value in values.items():
            self.logged[f"{self._function}/{key}"] = value


def run(dataflow: OrderedFunctions, batch: Mapping[str, object], call: Call) -> dict[str, object]:
    """Runs one step; see ``Dataflow.run``."""
    missing = sorted(dataflow.raw_names - set(batch.keys()))
    if missing:
        raise DataflowError(
            f"the dataset gives no {', '.join(map(repr, missing))}: it has {', '.join(sorted(batch.keys()))}"
        )
    data: dict[str, object] = {name: batch[name] for name in batch.keys()}  # noqa: SIM118  # a NamedArray iterates its values
    stores = {name: StepData(dataflow, name, data) for name in dataflow.funcs}
    ended: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()

    def work(name: str) -> None:
        try:
            _call_function(dataflow, name, stores[name], batch, call)
        except BaseException as error:
            ended.put((name, error))
        else:
            ended.put((name, None))

    sorter = graphlib.TopologicalSorter(dataflow.after)
    sorter.prepare()
    while sorter.is_active():
        for name in sorter.get_ready():
            # A daemon: after a failure the others may wait for ever for a worker, and the process has to end.
            threading.Thread(target=work, args=(name,), name=f"dataflow-{name}", daemon=True).start()
        name, error = ended.get()
        if error is not None:
            raise error
        sorter.done(name)
    return {key: value for store in stores.values() for key, value in store.logged.items()}


def _call_function(
    dataflow: OrderedFunctions, name: str, store: StepData, batch: Mapping[str, object], call: Call
) -> None:
    values: dict[str, object] = {}
    for parameter, (kind, query) in dataflow.needs[name].arguments.items():
        if kind is Commands:
            values[parameter] = Commands(store)
        elif kind is ModelQuery:
            values[parameter] = ModelQuery(query, call)
        elif kind is DataQuery:
            values[parameter] = store.get(query)
        else:
            values[parameter] = batch[query]
    dataflow.funcs[name](**values)
