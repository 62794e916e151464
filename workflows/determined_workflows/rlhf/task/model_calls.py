"""Calls of models: a batch is split over the replicas of a model, and their replies are merged and checked."""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import torch

from determined_workflows.rlhf.task.array_tree import NamedArray, flatten, recursive_aggregate, split
from determined_workflows.rlhf.task.call_watch import Requests
from determined_workflows.rlhf.task.streams import Reply


class CallError(RuntimeError):
    """A call that cannot be sent, or a reply that cannot be used. The text names model, call and worker."""


@dataclasses.dataclass(frozen=True)
class CallRecord:
    """One call as one worker executed it.

    ``version`` is that of the weights that were used; ``lag`` is how many train steps they are behind the newest.
    """

    worker: str
    model: str
    handle: str
    seconds: float
    tokens: int
    version: int
    lag: int


class ModelCalls:
    """Sends the calls of the dataflow to the replicas of each model.

    Args:
        requests: what sends a request to a worker.
        replicas: names of the workers of each model.

    Attributes:
        versions: train steps of each model, as its last reply said.
        records: the calls since the last :meth:`take_records`.
    """

    def __init__(
        self,
        requests: Requests,
        replicas: Mapping[str, Sequence[str]],
    ) -> None:
        self._requests = requests
        self._replicas = replicas
        self._lock = threading.Lock()
        self._records: list[CallRecord] = []
        self.versions = dict.fromkeys(replicas, 0)

    def __call__(self, model: str, handle: str, data: NamedArray) -> "Future[Any]":
        """Sends a call and returns the future of its result: arrays, or statistics by name.

        Raises:
            CallError: the replicas of the model do not divide the batch.
        """
        workers = self._replicas[model]
        parts = self._parts(model, handle, data, len(workers))
        expected = self.versions[model]
        result: Future[Any] = Future()
        pending = [self._requests.request(worker, handle, part) for worker, part in zip(workers, parts, strict=True)]
        answers = _Answers(len(pending))

        def finish(index: int, reply: "Future[Reply]") -> None:
            if not answers.add(index, reply):
                return
            try:
                result.set_result(self._merged(model, handle, parts, answers.replies(), expected))
            except BaseException as error:
                result.set_exception(error)

        for index, reply in enumerate(pending):
            reply.add_done_callback(lambda done, index=index: finish(index, done))  # type: ignore[misc]
        return result

    def take_records(self) -> list[CallRecord]:
        """Returns the calls since the last time and forgets them."""
        with self._lock:
            records, self._records = self._records, []
        return records

    def _parts(self, model: str, handle: str, data: NamedArray, count: int) -> list[NamedArray]:
        if not isinstance(data, NamedArray):
            raise CallError(f"{handle} of {model} takes a NamedArray, not a {type(data).__name__}")
        if count == 1:
            return [data]
        try:
            rows = data.length(0)
        except ValueError as error:
            raise CallError(f"{handle} of {model}: {error}, so it cannot be split over {count} replicas") from None
        if rows % count:
            raise CallError(
                f"{handle} of {model}: a batch of {rows} cannot be divided over {count} replicas; "
                "change the batch size of the dataloader or the number of replicas"
            )
        return split(data, count)

    def _merged(
        self, model: str, handle: str, parts: Sequence[NamedArray], replies: Sequence[Reply], expected: int
    ) -> Any:  # noqa: ANN401  # arrays or statistics
        workers = self._replicas[model]
        after = set()
        for worker, reply in zip(workers, replies, strict=True):
            version = int(reply.metadata["version"])
            self._record(
                CallRecord(
                    worker,
                    model,
                    handle,
                    float(reply.metadata["seconds"]),
                    int(reply.metadata["tokens"]),
                    version,
                    expected - version,
                )
            )
            if version != expected:
                raise CallError(
                    f"{worker}.{handle} used the weights of train step {version}, and those of train step {expected} "
                    "are the newest: the results would be of another policy"
                )
            after.add(int(reply.metadata["version_after"]))
        if len(after) > 1:
            raise CallError(f"the replicas of {model} disagree about their train steps after {handle}: {sorted(after)}")
        self.versions[model] = after.pop()
        if all(reply.data is None for reply in replies):
            return average([reply.metadata["stats"] for reply in replies])
        for worker, part, reply in zip(workers, parts, replies, strict=True):
            _check_rows(reply.data, part, f"{worker}.{handle}")
        return _joined([reply.data for reply in replies], f"{handle} of {model}")

    def _record(self, record: CallRecord) -> None:
        with self._lock:
            self._records.append(record)


class _Answers:
    """Collects the futures of one call's replicas."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._futures: list[Future[Reply] | None] = [None] * count
        self._missing = count

    def add(self, index: int, reply: "Future[Reply]") -> bool:
        """Adds one; returns True if it was the last."""
        with self._lock:
            self._futures[index] = reply
            self._missing -= 1
            return self._missing == 0

    def replies(self) -> list[Reply]:
        """Returns the replies in the order of the replicas. Raises what one of them raised."""
        return [reply.result() for reply in self._futures if reply is not None]


def average(stats: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the mean of each number over the replicas; a text is that of the first replica.

    >>> average([{"loss": 1.0}, {"loss": 3.0}])
    {'loss': 2.0}
    """
    merged = {}
    for name, first in stats[0].items():
        values = [each[name] for each in stats if name in each]
        numeric = len(values) > 1 and all(isinstance(value, (int, float)) for value in values)
        merged[name] = sum(values) / len(values) if numeric else first
    return merged


def _check_rows(reply: NamedArray | None, part: NamedArray, call: str) -> None:
    """Raises CallError unless each array of a reply has one row for each row of the data."""
    if reply is None:
        raise CallError(f"{call} returned nothing, and other replicas returned arrays")
    rows = {value.shape[0] for _, value in flatten(part) if getattr(value, "shape", ())}
    if len(rows) != 1:
        return
    expected = rows.pop()
    for name, value in flatten(reply):
        shape = tuple(getattr(value, "shape", ()))
        if value is not None and (not shape or shape[0] != expected):
            raise CallError(f"{call} returned {name} with the shape {shape} for a batch of {expected} rows")


def _joined(replies: Sequence[NamedArray | None], call: str) -> NamedArray:
    joined: NamedArray = replies[0] if len(replies) == 1 else _aggregated(replies, call)  # type: ignore[assignment]  # checked
    return joined


def _aggregated(replies: Sequence[NamedArray | None], call: str) -> NamedArray:
    try:
        result: NamedArray = recursive_aggregate(
            replies, lambda values: torch.cat([torch.as_tensor(v) for v in values])
        )
    except (RuntimeError, ValueError) as error:
        raise CallError(
            f"the replies of the replicas to {call} do not fit together: {error}; pad sequences to one length"
        ) from None
    return result
