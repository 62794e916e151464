"""Calls of models: a batch is split over the replicas, and replies are merged and checked."""

from concurrent.futures import Future
from typing import Any

import pytest
import torch

from determined_workflows.rlhf.task import step_metrics
from determined_workflows.rlhf.task.call_watch import TrackedRequests
from determined_workflows.rlhf.task.model_calls import CallError, ModelCalls, average
from determined_workflows.rlhf.task.named_array import NamedArray, from_dict
from determined_workflows.rlhf.task.streams import Reply


class Workers:
    """Answers requests at once, or when the test says so."""

    def __init__(self, *, is_slow: bool = False, version: int = 0, **arrays: Any) -> None:
        self.sent: list[tuple[str, str, NamedArray]] = []
        self.futures: list[Future[Reply]] = []
        self.is_slow, self.version, self.arrays = is_slow, version, arrays

    def request(self, worker: str, handle: str, data: NamedArray | None = None, **metadata: Any) -> "Future[Reply]":
        assert data is not None
        self.sent.append((worker, handle, data))
        future: Future[Reply] = Future()
        self.futures.append(future)
        if not self.is_slow:
            self.answer(len(self.futures) - 1)
        return future

    def answer(self, index: int) -> None:
        _, handle, data = self.sent[index]
        trained = handle == "train_step"
        metadata = {
            "stats": {"loss": float(data["x"].sum()), "name": "text"},
            "version": self.version,
            "version_after": self.version + trained,
            "seconds": 0.5,
            "tokens": 10,
        }
        changed = {name: value(data) if callable(value) else value for name, value in self.arrays.items()}
        reply = None if trained else from_dict({"y": data["x"] * 2, **changed})
        self.futures[index].set_result(Reply(reply, metadata))


def calls(workers: Workers, replicas: int = 2) -> ModelCalls:
    return ModelCalls(workers, {"actor": [f"actor[{index}]" for index in range(replicas)]})


def rows(count: int) -> NamedArray:
    return from_dict({"x": torch.arange(count)})  # type: ignore[no-any-return]  # not None


def test_replicas_get_equal_parts_and_their_replies_are_joined_in_order() -> None:
    workers = Workers()
    result = calls(workers)("actor", "inference", rows(6)).result(0)
    assert [(worker, part["x"].tolist()) for worker, _, part in workers.sent] == [
        ("actor[0]", [0, 1, 2]),
        ("actor[1]", [3, 4, 5]),
    ]
    assert result["y"].tolist() == [0, 2, 4, 6, 8, 10]


def test_replies_that_come_in_another_order_are_joined_in_the_order_of_the_replicas() -> None:
    workers = Workers(is_slow=True)
    future = calls(workers)("actor", "inference", rows(4))
    workers.answer(1)
    assert not future.done()
    workers.answer(0)
    assert future.result(0)["y"].tolist() == [0, 2, 4, 6]


def test_a_batch_that_the_replicas_do_not_divide_is_refused_before_it_is_sent() -> None:
    workers = Workers()
    with pytest.raises(CallError, match="a batch of 5 cannot be divided over 2 replicas"):
        calls(workers)("actor", "generate", rows(5))
    assert workers.sent == []


def test_statistics_are_averaged_over_the_replicas() -> None:
    assert calls(Workers())("actor", "train_step", rows(4)).result(0) == {"loss": 3.0, "name": "text"}
    assert average([{"loss": 2}]) == {"loss": 2}


def test_weights_older_than_the_last_train_step_are_refused() -> None:
    workers = Workers()
    used = calls(workers)
    used("actor", "train_step", rows(2)).result(0)
    with pytest.raises(
        CallError, match=r"actor\[0\].generate used the weights of train step 0, .* step 1 are the newest"
    ):
        used("actor", "generate", rows(2)).result(0)


def test_the_version_after_a_train_step_is_expected_of_the_next_call() -> None:
    workers = Workers()
    used = calls(workers, 1)
    used("actor", "train_step", rows(2)).result(0)
    workers.version = 1
    used("actor", "generate", rows(2)).result(0)
    assert used.versions == {"actor": 1}
    assert [(record.handle, record.version, record.lag) for record in used.take_records()] == [
        ("train_step", 0, 0),
        ("generate", 1, 0),
    ]
    assert used.take_records() == []


def test_a_reply_with_another_number_of_rows_is_refused() -> None:
    workers = Workers(z=lambda data: torch.zeros(len(data["x"]) + 1, 3))
    with pytest.raises(
        CallError, match=r"actor\[0\].inference returned z with the shape \(3, 3\) for a batch of 2 rows"
    ):
        calls(workers)("actor", "inference", rows(4)).result(0)


def test_sequences_of_different_lengths_cannot_be_joined() -> None:
    lengths = iter((4, 5))
    workers = Workers(seq=lambda data: torch.zeros(len(data["x"]), next(lengths)))
    with pytest.raises(CallError, match="pad sequences to one length"):
        calls(workers)("actor", "generate", rows(4)).result(0)


def test_an_error_of_one_replica_is_the_error_of_the_call() -> None:
    workers = Workers(is_slow=True)
    future = calls(workers)("actor", "inference", rows(4))
    workers.answer(0)
    workers.futures[1].set_exception(ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        future.result(0)


def test_calls_without_a_reply_are_named_with_their_seconds() -> None:
    now = [5.0]
    workers = Workers(is_slow=True)
    tracked = TrackedRequests(workers, clock=lambda: now[0])
    ModelCalls(tracked, {"actor": ["actor[0]"]})("actor", "generate", rows(2))
    now[0] = 65.0
    assert tracked.in_flight() == [("actor[0].generate", 60.0)]
    workers.answer(0)
    assert tracked.in_flight() == []


def test_a_call_that_cannot_be_sent_does_not_wait_for_a_reply() -> None:
    class Refusing:
        def request(self, worker: str, handle: str, data: NamedArray | None = None, **metadata: Any) -> "Future[Reply]":
            raise ValueError("too large")

    tracked = TrackedRequests(Refusing())
    with pytest.raises(ValueError, match="too large"):
        tracked.request("actor[0]", "generate")
    assert tracked.in_flight() == []


def test_metrics_of_a_step_have_seconds_tokens_and_versions() -> None:
    workers = Workers()
    used = calls(workers)
    used("actor", "train_step", rows(4)).result(0)
    metrics = step_metrics.of_step({"train/loss": 1.5}, used.take_records(), epoch=2, seconds=4.0)
    assert metrics == {
        "train/loss": 1.5,
        "epoch": 2,
        "seconds/step": 4.0,
        "seconds/actor[0]/train_step": 0.5,
        "seconds/actor[1]/train_step": 0.5,
        "version/actor": 0,
        "version_lag/actor": 0,
        "tokens_per_second/actor/train_step": 40.0,
        "tokens_per_second": 5.0,
    }
