"""The dataflow of a step: dependencies found by a mock run, levels, what is refused, and how it runs."""

import functools
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from determined_workflows.rlhf.task.dataflow import (
    Commands,
    Dataflow,
    DataflowError,
    DataQuery,
    MasterWorkerECS,
    ModelQuery,
    RawDataQuery,
)
from determined_workflows.rlhf.task.named_array import NamedArray, from_dict

MODELS = [SimpleNamespace(model_name=name) for name in ("actor", "critic", "ref", "reward")]


def rollout(commands: Commands, model: ModelQuery["actor"], prompts: RawDataQuery["prompts"]) -> None:
    result = model.generate(commands.build_model_inputs(prompts=prompts))
    commands.set_data("seq", result["seq"])
    commands.set_data("logp", result.logp)


def ref_logits(commands: Commands, model: ModelQuery["ref"], seq: DataQuery["seq"]) -> None:
    commands.set_data("ref_logp", model(commands.build_model_inputs(seq=seq))["logp"])


def score(commands: Commands, model: ModelQuery["reward"], seq: DataQuery["seq"], p: DataQuery["prompts"]) -> None:
    commands.set_data("score", model(commands.build_model_inputs(seq=seq, prompts=p))["score"])


def values(commands: Commands, model: ModelQuery["critic"]) -> None:
    commands.set_data("values", model(commands.build_model_inputs(seq=commands.get_data("seq")))["values"])


def train_actor(
    commands: Commands,
    model: ModelQuery["actor"],
    seq: DataQuery["seq"],
    old: DataQuery["ref_logp"],
    score: DataQuery["score"],
    values: DataQuery["values"],
) -> None:
    commands.log(model.train_step(commands.build_model_inputs(seq=seq, old=old, score=score, values=values)))


def train_critic(
    commands: Commands,
    model: ModelQuery["critic"],
    seq: DataQuery["seq"],
    score: DataQuery["score"],
    v: DataQuery["values"],
) -> None:
    commands.log(model.train_step(commands.build_model_inputs(seq=seq, score=score, values=v)))


PPO = [train_critic, rollout, ref_logits, score, values, train_actor]


def build(*functions: Callable[..., Any]) -> Dataflow:
    return MasterWorkerECS(MODELS).add_systems(functions).build()


def test_levels_of_ppo_follow_from_its_data() -> None:
    flow = build(*PPO)
    assert flow.levels == [["rollout"], ["ref_logits", "score", "values"], ["train_critic", "train_actor"]]
    assert flow.funcs["rollout"] is rollout
    assert flow.calls == {
        ("actor", "generate"),
        ("actor", "train_step"),
        ("ref", "inference"),
        ("reward", "inference"),
        ("critic", "inference"),
        ("critic", "train_step"),
    }


def test_before_and_after_order_functions_that_share_no_data() -> None:
    def first(commands: Commands) -> None: ...

    def second(commands: Commands) -> None: ...

    def third(commands: Commands) -> None: ...

    ecs = MasterWorkerECS(MODELS).add_system(third).add_system(second, before=[third], after="first")
    assert ecs.add_system(first).build().levels == [["first"], ["second"], ["third"]]


def test_functions_of_one_model_run_in_the_order_in_which_they_were_added() -> None:
    def one(commands: Commands, model: ModelQuery["actor"]) -> None: ...

    def two(commands: Commands, model: ModelQuery["actor"], other: ModelQuery["ref"]) -> None: ...

    def three(commands: Commands, model: ModelQuery["ref"]) -> None: ...

    assert build(two, three, one).levels == [["two"], ["three", "one"]]
    assert build(three, one, two).levels == [["three", "one"], ["two"]]


def test_data_order_calls_of_one_model_against_the_order_of_adding() -> None:
    def late(commands: Commands, model: ModelQuery["actor"], x: DataQuery["x"]) -> None: ...

    def middle(commands: Commands, x: DataQuery["early"]) -> None:
        commands.set_data("x", x)

    def early(commands: Commands, model: ModelQuery["actor"]) -> None:
        commands.set_data("early", model(NamedArray()))

    assert build(late, middle, early).levels == [["early"], ["middle"], ["late"]]


def test_stand_ins_allow_what_functions_do_with_data() -> None:
    def compute(commands: Commands, x: RawDataQuery["x"], mask: RawDataQuery["mask"]) -> None:
        y = torch.cat([x[:, 1:], -x * 2 + 1], dim=-1) @ x.T
        if x.shape[0] > 3 and (x == mask).float().mean() > 0.5 and len(x):
            y[mask] = 0
        for row in x:
            y = y + row
        commands.log(
            {"mean": float(y.mean()), "text": f"{y.sum():.3f}", "sum": np.sum(x), "where": np.where(x > 0, x, 0)}
        )
        commands.set_data("y", torch.where(mask, y, 1 - y) % 2 + int(x[0]) + sum(range(x.size(0))))

    def use(commands: Commands, y: DataQuery["y"]) -> None: ...

    assert build(compute, use).levels == [["compute"], ["use"]]


def test_partials_and_defaults_are_functions_too() -> None:
    def clip(commands: Commands, limit: float, x: RawDataQuery["x"], scale: float = 2.0, **more: Any) -> None:
        commands.log({"scale": scale, "limit": limit})

    flow = build(functools.partial(clip, limit=3.0))
    assert flow.run({"x": 1}, no_call) == {"clip/scale": 2.0, "clip/limit": 3.0}


def test_annotations_that_are_texts_are_read() -> None:
    def later(commands, model, x):  # type: ignore[no-untyped-def]
        commands.set_data("y", model(x))

    later.__annotations__ = {"commands": "Commands", "model": "ModelQuery['ref']", "x": "RawDataQuery['x']"}
    assert build(later).calls == {("ref", "inference")}


def no_call(model: str, handle: str, inputs: NamedArray) -> "Future[Any]":
    raise AssertionError("no model is called")


def circle_a(commands: Commands, b: DataQuery["b"]) -> None:
    commands.set_data("a", b)


def circle_b(commands: Commands, a: DataQuery["a"]) -> None:
    commands.set_data("b", a)


def own(commands: Commands, x: DataQuery["x"]) -> None:
    commands.set_data("x", x)


def unknown_data(commands: Commands, seqs: DataQuery["seqs"]) -> None: ...


def unknown_model(commands: Commands, model: ModelQuery["actors"]) -> None: ...


def also_sets_seq(commands: Commands) -> None:
    commands.set_data("seq", 1)


def fails(commands: Commands, x: RawDataQuery["x"]) -> None:
    raise RuntimeError("no stand-in can do this")


def fails_in_a_library(commands: Commands, x: RawDataQuery["x"]) -> None:
    json.loads(x)


def untyped(commands: Commands, x) -> None: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("functions", "text"),
    [
        (
            [circle_a, circle_b],
            r"in a circle: .*circle_. after circle_. \(by '.'\), circle_. after circle_. \(by '.'\)",
        ),
        ([own], r"in a circle: own after own \(by 'x'\)"),
        ([rollout, unknown_data], r"unknown_data \(.*test_dataflow.py:\d+\).*no data 'seqs': did you mean 'seq'"),
        ([unknown_model], r"no worker has: there is no model 'actors': did you mean 'actor'"),
        ([rollout, also_sets_seq], r"rollout and also_sets_seq .*both set 'seq'"),
        ([fails], r"function fails .*RuntimeError: no stand-in can do this \(.*test_dataflow.py:\d+\)"),
        ([fails_in_a_library], r"TypeError: .* \(.*test_dataflow.py:\d+\)"),
        ([untyped], r"parameter 'x' of the function untyped .*is no query"),
        ([], r"no functions"),
        ([3], r"3 is no function"),
        ([rollout, functools.partial(rollout)], r"two functions have the name 'rollout'"),
    ],
)
def test_a_dataflow_that_cannot_run_is_refused_with_its_place(functions: list[Any], text: str) -> None:
    with pytest.raises(DataflowError, match=text):
        build(*functions)


def test_an_unknown_neighbour_is_refused() -> None:
    with pytest.raises(DataflowError, match="no function 'roll_out': did you mean 'rollout'"):
        MasterWorkerECS(MODELS).add_system(rollout, after="roll_out").build()


def test_a_dataflow_of_other_things_than_model_workers_is_refused() -> None:
    with pytest.raises(DataflowError, match="takes the list of model workers; 'actor' is none"):
        MasterWorkerECS(["actor"])  # type: ignore[list-item]


def test_a_query_takes_a_name() -> None:
    with pytest.raises(TypeError, match=r"ModelQuery\['name'\], not 3"):
        ModelQuery[3]


class Models:
    """Answers calls when it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.waiting: dict[tuple[str, str], Future[Any]] = {}
        self.changed = threading.Condition()

    def call(self, model: str, handle: str, inputs: NamedArray) -> "Future[Any]":
        future: Future[Any] = Future()
        with self.changed:
            self.calls.append((model, handle))
            self.waiting[model, handle] = future
            self.changed.notify_all()
        return future

    def wait_for(self, *calls: tuple[str, str]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: set(self.waiting) == set(calls), 5), self.waiting

    def answer(self, model: str, handle: str, **values: Any) -> None:
        with self.changed:
            future = self.waiting.pop((model, handle))
        future.set_result(values if handle == "train_step" else from_dict(values))


class Step:
    """A step that runs in a thread."""

    def __init__(self, flow: Dataflow, call: Any) -> None:
        self.logged: dict[str, object] = {}
        self.error: BaseException | None = None

        def run() -> None:
            try:
                self.logged = flow.run({"prompts": np.zeros((4, 2)), "x": np.zeros(4)}, call)
            except BaseException as error:
                self.error = error

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(5)
        assert not self._thread.is_alive()


def test_a_call_starts_as_soon_as_its_own_inputs_are_there() -> None:
    models, array = Models(), np.zeros((4, 3))
    step = Step(build(*PPO), models.call)
    models.wait_for(("actor", "generate"))
    models.answer("actor", "generate", seq=array, logp=array)
    models.wait_for(("ref", "inference"), ("reward", "inference"), ("critic", "inference"))
    models.answer("critic", "inference", values=array)
    models.answer("reward", "inference", score=array)
    models.wait_for(("ref", "inference"), ("critic", "train_step"))  # a level would wait for the reference
    models.answer("critic", "train_step", loss=1.0)
    models.answer("ref", "inference", logp=array)
    models.wait_for(("actor", "train_step"))
    models.answer("actor", "train_step", loss=2.0)
    step.join()
    assert step.error is None
    assert step.logged == {"train_critic/loss": 1.0, "train_actor/loss": 2.0}


def test_a_function_that_raises_ends_the_step_without_waiting_for_others() -> None:
    models = Models()

    def broken(commands: Commands, x: RawDataQuery["x"]) -> None:
        if isinstance(x, np.ndarray):
            models.wait_for(("actor", "generate"))
            raise RuntimeError("broken in the step")

    def never(commands: Commands, model: ModelQuery["ref"]) -> None:
        model(NamedArray())

    step = Step(
        MasterWorkerECS(MODELS).add_systems([rollout, broken]).add_system(never, after=broken).build(), models.call
    )
    step.join()
    assert str(step.error) == "broken in the step"
    assert models.calls == [("actor", "generate")]
    models.answer("actor", "generate", seq=np.zeros(1), logp=np.zeros(1))


def test_a_batch_without_raw_data_is_refused_before_a_function_runs() -> None:
    with pytest.raises(DataflowError, match="the dataset gives no 'prompts': it has prompt"):
        build(rollout).run({"prompt": 1}, no_call)


def test_a_named_array_is_a_batch() -> None:
    def mean(commands: Commands, x: RawDataQuery["x"]) -> None:
        commands.log({"mean": x.mean()})

    assert build(mean).run(from_dict({"x": np.arange(3)}), no_call) == {"mean/mean": 1.0}


def test_data_that_this_step_did_not_set_are_named() -> None:
    def maybe(commands: Commands, x: RawDataQuery["x"]) -> None:
        if x.any():
            commands.set_data("y", x)

    def reads(commands: Commands, y: DataQuery["y"]) -> None: ...

    with pytest.raises(DataflowError, match="reads reads 'y', which was not set in this step"):
        build(maybe, reads).run({"x": np.zeros(2)}, no_call)


def test_a_read_that_the_mock_run_did_not_see_is_refused() -> None:
    def sets(commands: Commands) -> None:
        commands.set_data("y", 1)

    def sometimes(commands: Commands, x: RawDataQuery["x"]) -> None:
        if not x:
            commands.get_data("y")

    with pytest.raises(DataflowError, match=r"sometimes reads 'y' in some steps only: .* DataQuery\['y'\]"):
        build(sets, sometimes).run({"x": 0}, no_call)


def test_a_name_that_another_function_sets_is_refused_in_the_step() -> None:
    def sets(commands: Commands) -> None:
        commands.set_data("y", 1)

    def spreads(commands: Commands, x: RawDataQuery["x"]) -> None:
        for name, value in x.items():
            commands.set_data(name, value)

    assert build(sets, spreads).run({"x": {"z": 1}}, no_call) == {}
    with pytest.raises(DataflowError, match="spreads sets 'y', which another function sets"):
        build(sets, spreads).run({"x": {"y": 1}}, no_call)
