"""``DDPSync``: a model that several slots share behaves as the user's own model."""

import copy
import gc
import weakref

import pytest
import torch
from torch import nn

from determined.pytorch._gradient_sync import DDPSync
from determined.pytorch._state import bare

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:`broadcast_buffers` is deprecated:FutureWarning"),
]


class Classifier(nn.Module):
    """A model with its own attributes and methods, as in user code."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))
        self.classes = 2
        self.logger = "the user's own"
        self.temperature = 1.0

    def forward(self, inputs):
        return self.head(self.body(inputs)) / self.temperature

    def encode(self, inputs):
        return self.body(inputs)

    @property
    def size(self):
        return sum(parameter.numel() for parameter in self.parameters())


@pytest.fixture
def wrapped_and_model(tmp_path):
    """Yields the wrapped model and the model, in a process group of one."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    model = Classifier()
    try:
        yield DDPSync(torch.device("cpu")).model(model), model
    finally:
        torch.distributed.destroy_process_group()


def test_the_wrapper_has_the_attributes_methods_and_submodules_of_the_model(wrapped_and_model):
    wrapped, model = wrapped_and_model
    inputs = torch.ones(1, 3)
    assert (wrapped.classes, wrapped.size) == (2, model.size)
    assert wrapped.body is model.body
    assert torch.equal(wrapped.encode(inputs), model.encode(inputs))
    with pytest.raises(AttributeError, match="'Classifier' object has no attribute 'nothing'"):
        _ = wrapped.nothing


def test_setting_an_attribute_of_the_model_on_the_wrapper_changes_the_model(wrapped_and_model):
    wrapped, model = wrapped_and_model
    before = model(torch.ones(4, 3)).detach()
    wrapped.temperature = 2.0
    assert model.temperature == 2.0
    assert torch.allclose(model(torch.ones(4, 3)).detach(), before / 2)
    wrapped.note = "of the wrapper"
    assert not hasattr(model, "note")
    assert model.logger == "the user's own"


def test_the_wrapper_has_the_state_and_parameter_names_of_the_model(wrapped_and_model):
    wrapped, model = wrapped_and_model
    assert list(wrapped.state_dict()) == list(model.state_dict())
    assert [name for name, _ in wrapped.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert [name for name, _ in wrapped.named_buffers()] == [name for name, _ in model.named_buffers()]
    assert bare(wrapped) is model


@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_wrapper_loads_a_state_with_or_without_the_module_prefix(wrapped_and_model, prefix):
    wrapped, model = wrapped_and_model
    state = {f"{prefix}{key}": torch.zeros_like(value) for key, value in model.state_dict().items()}
    wrapped.load_state_dict(state)
    assert all(not value.any() for value in model.state_dict().values())
    with pytest.raises(RuntimeError, match="Missing key"):
        wrapped.load_state_dict({f"{prefix}other": torch.zeros(1)})


def test_training_hooks_and_modes_work_through_the_wrapper(wrapped_and_model):
    wrapped, model = wrapped_and_model
    hooked_modules = []
    wrapped.register_forward_hook(lambda module, inputs, output: hooked_modules.append(module))
    before = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    wrapped(torch.randn(4, 3)).square().sum().backward()
    optimizer.step()
    assert hooked_modules == [wrapped]
    assert not torch.equal(model.body.weight, before["body.weight"])
    wrapped.eval()
    assert not model.training
    assert not model.head[0].training


def test_deleting_a_wrapped_model_does_not_delete_its_process_group(tmp_path):
    """Otherwise the process may hang, because the group's thread may need the interpreter lock to release a gradient."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    group = weakref.ref(torch.distributed.group.WORLD)
    wrapped = DDPSync(torch.device("cpu")).model(Classifier())
    wrapped(torch.ones(4, 3)).sum().backward()
    torch.distributed.destroy_process_group()
    del wrapped
    gc.collect()
    assert group() is not None
