"""One replica of a model: calls of its interface, versions, statistics, and its state."""

from pathlib import Path
from typing import Any

import pytest
import torch

from determined_workflows.rlhf.task import deepspeed_backend, schedules, torch_backend
from determined_workflows.rlhf.task.model import (
    FinetuneSpec,
    Model,
    ModelBackend,
    ModelInterface,
    make_backend,
    make_model,
    register_model,
)
from determined_workflows.rlhf.task.named_array import NamedArray, from_dict
from determined_workflows.rlhf.task.replica import Replica, count_tokens

SPEC = FinetuneSpec(2, 8, 4, 4)
BATCH = {"x": torch.ones(4, 3)}


class Interface(ModelInterface):
    returns: Any = None
    calls = 0

    def inference(self, model: Model, data: NamedArray) -> NamedArray | None:
        return self.returns if self.returns is not None else from_dict({"y": model.module(data["x"])[:, 0]})

    def train_step(self, model: Model, data: NamedArray) -> dict[str, Any]:
        self.calls += 1
        loss = (model.module(data["x"]) ** 2).mean() * self.calls
        model.module.backward(loss)
        model.module.step()
        return {"loss": loss.detach()}

    def state_dict(self) -> dict[str, Any]:
        return {"calls": self.calls}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.calls = state["calls"]

    def save(self, model: Model, save_dir: str) -> None:
        torch.save(1, Path(save_dir) / "saved.pt")


def linear(name: str, device: str) -> Model:
    return Model(name, torch.nn.Linear(3, 2), None, device)


register_model("test-linear", linear)


def replica(backend: ModelBackend | None = None, rank: int = 0) -> Replica:
    torch.manual_seed(3)
    created = Replica(
        "actor[0]", make_model("test-linear", "actor", "cpu"), Interface(), backend or make_backend("torch_train"),
        rank=rank,
    )  # fmt: skip
    created.initialize(SPEC, ["inference", "train_step"])
    return created


def train(trained: Replica, steps: int) -> list[float]:
    return [trained.call("train_step", from_dict(BATCH))[1]["stats"]["loss"] for _ in range(steps)]


def test_a_reply_has_arrays_without_gradients_and_the_version_that_was_used() -> None:
    reply, facts = replica().call("inference", from_dict(BATCH))
    assert reply is not None
    assert not reply["y"].requires_grad
    assert (facts["version"], facts["version_after"], facts["stats"]) == (0, 0, {})
    assert facts["seconds"] > 0


def test_a_train_step_that_does_not_count_is_counted() -> None:
    trained = replica()
    _, facts = trained.call("train_step", from_dict(BATCH))
    assert (facts["version"], facts["version_after"]) == (0, 1)
    train(trained, 4)
    assert trained.model.version.epoch == 1
    assert trained.model.version.epoch_step == 1


def test_an_interface_that_lacks_a_called_method_is_refused() -> None:
    created = replica()
    with pytest.raises(TypeError, match=r"the dataflow calls generate of actor\[0\], and its interface Interface"):
        created.initialize(SPEC, ["generate", "inference"])


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (torch.zeros(2), "returned a Tensor: return a NamedArray"),
        ({"loss": torch.zeros(2)}, r"loss in the result of Interface.inference of actor\[0\] has the shape \(2,\)"),
        ({"loss": object()}, "is a object: statistics are numbers"),
    ],
)
def test_a_result_that_cannot_be_sent_is_named(returned: object, text: str) -> None:
    created = replica()
    created.interface.returns = returned  # type: ignore[attr-defined]  # of this test's interface
    with pytest.raises(TypeError, match=text):
        created.call("inference", from_dict(BATCH))


def test_a_restored_replica_trains_on_bit_by_bit() -> None:
    straight = train(replica(), 6)
    first = replica()
    begun = train(first, 3)
    state = first.state_dict()
    second = replica()
    second.load_state_dict(state, state["training"])
    assert begun + train(second, 3) == straight
    assert second.model.version.global_step == 6


def test_only_the_first_replica_stores_the_weights() -> None:
    assert "training" in replica().state_dict()
    assert "training" not in replica(rank=1).state_dict()


def test_the_files_of_the_first_replica_are_kept(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / str(rank)).mkdir()
        replica(rank=rank).store(tmp_path / str(rank), "actor", saves=True)
    assert (tmp_path / "0" / "models" / "actor" / "saved.pt").is_file()
    assert list((tmp_path / "1").iterdir()) == []


def test_an_inference_backend_freezes_the_module() -> None:
    created = replica(make_backend("torch_inference"))
    assert not created.model.module.training
    assert not any(parameter.requires_grad for parameter in created.model.module.parameters())
    assert set(created.state_dict()["training"]) == {"module"}


def test_tokens_are_those_of_the_mask_or_of_the_largest_integer_matrix() -> None:
    ids = torch.zeros(2, 5, dtype=torch.long)
    mask = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]])
    assert count_tokens(from_dict({"input_ids": ids, "attention_mask": mask})) == 5
    assert count_tokens(from_dict({"seq": ids, "scores": torch.zeros(2, 9)})) == 10
    assert count_tokens(from_dict({"scores": torch.zeros(2)})) == 0
    assert count_tokens(None) == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [("constant", [0.5, 1, 1, 1, 1]), ("linear", [0.5, 1, 1, 0.55, 0.1]), ("cosine", [0.5, 1, 1, 0.55, 0.1])],
)
def test_schedules_rise_and_fall_to_their_least_rate(name: str, expected: list[float]) -> None:
    rate = schedules.factor(name, 0.5, 0.1, total_steps=4)
    assert [rate(step) for step in range(5)] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"optimizer_name": "lion"}, "optimizer_name is one of adam, sgd, not 'lion'"),
        ({"lr_scheduler_type": "step"}, "lr_scheduler_type is one of cosine, linear, constant, not 'step'"),
        ({"warmup_steps_proportion": 2.0}, "from 0 to 1, not 2.0"),
    ],
)
def test_a_backend_refuses_arguments_that_it_does_not_know(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        torch_backend.TorchTrainBackend(**arguments)


@pytest.mark.parametrize("norm", [None, 0])
def test_gradients_are_not_clipped_without_a_norm(norm: float | None) -> None:
    model = make_model("test-linear", "actor", "cpu")
    before = model.module.weight.detach().clone()
    backend = torch_backend.TorchTrainBackend("sgd", {"lr": 1.0}, "constant", max_grad_norm=norm)
    engine = backend.initialize(model, SPEC).module
    engine.backward(engine(BATCH["x"]).sum())
    engine.step()
    torch.testing.assert_close(before - engine.module.weight, torch.full((2, 3), 4.0))


def test_a_model_without_parameters_to_train_is_refused() -> None:
    model = make_model("test-linear", "actor", "cpu")
    model.module.requires_grad_(requires_grad=False)
    with pytest.raises(ValueError, match="model actor has no parameter that requires gradients"):
        make_backend("torch_train").initialize(model, SPEC)


def test_a_model_that_was_not_initialized_counts_no_steps() -> None:
    with pytest.raises(RuntimeError, match="model actor has no ft_spec"):
        make_model("test-linear", "actor", "cpu").inc_version()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"optimizer_name": "lamb"}, "optimizer_name is adam, not 'lamb'; torch_train has others"),
        ({"zero_stage": 3}, "zero_stage is 0, 1 or 2, not 3"),
        ({"enable_hybrid_engine": True}, "there is no hybrid engine"),
    ],
)
def test_deepspeed_refuses_arguments_that_it_does_not_know(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        deepspeed_backend.DeepSpeedTrainBackend(**arguments)


def test_half_precision_is_turned_off_on_the_processor(capsys: pytest.CaptureFixture[str]) -> None:
    configuration = deepspeed_backend.DeepSpeedTrainBackend().configuration("cpu", SPEC)
    assert configuration["fp16"] == {"enabled": False}
    assert configuration["train_micro_batch_size_per_gpu"] == 4
    assert "fp16 is turned off: there is no GPU" in capsys.readouterr().out
    assert deepspeed_backend.DeepSpeedTrainBackend().configuration("cuda:0", SPEC)["fp16"] == {"enabled": True}


def test_evaluation_draws_no_random_numbers_of_the_training() -> None:
    class Drawing(Interface):
        def evaluate(self, model: Model, eval_dataloader: Any) -> dict[str, Any]:
            return {"drawn": sum(float(batch) for batch in eval_dataloader) + torch.rand(1).item()}

    created = replica()
    created.interface, created.eval_loader = Drawing(), [1, 2]  # type: ignore[assignment]  # any iterable
    state = torch.get_rng_state()
    assert created.evaluate()["drawn"] > 3
    assert torch.equal(torch.get_rng_state(), state)
    created.eval_loader = None
    assert created.evaluate() == {}
