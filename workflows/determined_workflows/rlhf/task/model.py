"""``api.model``: models, their interfaces and backends, each registered by name.

A model worker builds its model with ``make_model``, gives it an optimizer with ``ModelBackend.initialize``, and
answers the calls of the dataflow with the methods of a ``ModelInterface``.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, cast

import torch

from determined_workflows.rlhf.task.array_tree import NamedArray, recursive_apply  # noqa: F401  # names of api.model
from determined_workflows.rlhf.task.data import Loader, type_and_args
from determined_workflows.rlhf.task.registry import BACKENDS, INTERFACES, MODELS


@dataclasses.dataclass
class ModelVersion:
    """How far the weights of a model are trained.

    Attributes:
        epoch: epochs completed.
        epoch_step: train steps completed in this epoch.
        global_step: train steps completed.
    """

    epoch: int = 0
    epoch_step: int = 0
    global_step: int = 0


@dataclasses.dataclass
class FinetuneSpec:
    """Sizes of the whole training, which a backend needs for its schedules.

    Attributes:
        total_train_epochs: epochs of the training.
        total_train_steps: steps of the training, all epochs together.
        steps_per_epoch: steps of one epoch.
        batch_size_per_device: items of a batch that each replica of the model receives.
    """

    total_train_epochs: int
    total_train_steps: int
    steps_per_epoch: int
    batch_size_per_device: int


@dataclasses.dataclass
class Model:
    """A neural network with its tokenizer. Its module is moved to the device when the model is made.

    Attributes:
        name: name of the model in the experiment, for example ``actor``.
        module: a ``torch.nn.Module``; after ``ModelBackend.initialize`` the engine of the backend.
        tokenizer: a Hugging Face tokenizer, or None.
        device: device of the module.
        version: how far the weights are trained.
        ft_spec: sizes of the training; None before ``ModelBackend.initialize``.
    """

    name: str
    module: Any
    tokenizer: Any
    device: str | torch.device
    version: ModelVersion = dataclasses.field(default_factory=ModelVersion)
    ft_spec: FinetuneSpec | None = None

    def __post_init__(self) -> None:
        self.module = self.module.to(self.device)

    def inc_version(self) -> None:
        """Counts one train step. If an interface's ``train_step`` does not call it, the model worker does.

        Raises:
            RuntimeError: the model was not initialized by a backend.
        """
        if self.ft_spec is None:
            raise RuntimeError(f"model {self.name} has no ft_spec: initialize it by its backend before it is trained")
        self.version.global_step += 1
        self.version.epoch_step += 1
        if self.version.epoch_step >= self.ft_spec.steps_per_epoch:
            self.version.epoch += 1
            self.version.epoch_step = 0


class ModelInterface:
    """The calls that a model answers. A subclass implements those that its experiment uses.

    All methods receive the model and one replica's part of the data. ``inference`` and ``generate`` return a
    ``NamedArray`` whose members have the batch as first dimension, or None; ``train_step`` and ``evaluate`` return
    statistics by name.

    >>> class Squares(ModelInterface):
    ...     def inference(self, model, data):
    ...         return from_dict({"squares": data["x"] ** 2})
    """

    def save(self, model: Model, save_dir: str) -> None:
        """Writes the model into a folder; by default it writes nothing.

        Args:
            model: the model of this worker.
            save_dir: an existing folder. All replicas of the model are called, each with a folder of its own; the
                files of the first replica are kept.
        """

    def evaluate(self, model: Model, eval_dataloader: Loader) -> dict[str, Any]:
        """Returns statistics of the model over the dataloader made from the worker's ``eval_datasets``."""
        raise NotImplementedError(_missing(self, "evaluate"))

    def inference(self, model: Model, data: NamedArray) -> NamedArray | None:
        """Returns the results of a forward pass."""
        raise NotImplementedError(_missing(self, "inference"))

    def generate(self, model: Model, data: NamedArray) -> NamedArray | None:
        """Returns generated sequences."""
        raise NotImplementedError(_missing(self, "generate"))

    def train_step(self, model: Model, data: NamedArray) -> dict[str, Any]:
        """Updates the weights and returns statistics by name: numbers or tensors with one element."""
        raise NotImplementedError(_missing(self, "train_step"))


class ModelBackend(abc.ABC):
    """Prepares a model for its calls, for example with an optimizer. Subclasses implement ``_initialize``."""

    @abc.abstractmethod
    def _initialize(self, model: Model, spec: FinetuneSpec) -> Model: ...

    def initialize(self, model: Model, spec: FinetuneSpec) -> Model:
        """Returns the model, ready for its calls.

        Args:
            model: a model as ``make_model`` made it.
            spec: sizes of the training.
        """
        model.ft_spec = spec
        return self._initialize(model, spec)


def register_model(name: str, factory: Callable[..., Model]) -> None:
    """Registers a function ``f(name, device, **args)`` that returns a :class:`Model`."""
    MODELS.register(name, factory)


def make_model(cfg: Any, name: str, device: str | torch.device) -> Model:  # noqa: ANN401  # any object with type_ and args
    """Returns the model of a configuration. Raises UnknownName if no model of this ``type_`` is registered."""
    type_, args = type_and_args(cfg)
    model = MODELS.get(type_)(name, device, **args)
    if not isinstance(model, Model):
        raise TypeError(f"model {type_} returned a {type(model).__name__}: return api.model.Model(name, module, …)")
    return model


def register_interface(name: str, interface_cls: Callable[..., ModelInterface]) -> None:
    """Registers a subclass of :class:`ModelInterface`."""
    INTERFACES.register(name, interface_cls)


def make_interface(cfg: Any) -> ModelInterface:  # noqa: ANN401  # any object with type_ and args
    """Returns the interface of a configuration. Raises UnknownName if none of this ``type_`` is registered."""
    type_, args = type_and_args(cfg)
    return cast("ModelInterface", INTERFACES.get(type_)(**args))


def register_backend(name: str, backend_cls: Callable[..., ModelBackend]) -> None:
    """Registers a subclass of :class:`ModelBackend`."""
    BACKENDS.register(name, backend_cls)


def make_backend(cfg: Any) -> ModelBackend:  # noqa: ANN401  # any object with type_ and args
    """Returns the backend of a configuration. Raises UnknownName if none of this ``type_`` is registered."""
    type_, args = type_and_args(cfg)
    return cast("ModelBackend", BACKENDS.get(type_)(**args))


def _missing(interface: ModelInterface, call: str) -> str:
    return f"{type(interface).__name__} does not implement {call}(), which the dataflow calls"
