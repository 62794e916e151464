"""One replica of a model: executes the calls of its interface, and stores and restores its state."""

import contextlib
import dataclasses
import gc
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch

from determined_workflows.rlhf.task import random_states
from determined_workflows.rlhf.task.array_tree import NamedArray, recursive_apply
from determined_workflows.rlhf.task.data import Loader
from determined_workflows.rlhf.task.model import (
    FinetuneSpec,
    Model,
    ModelBackend,
    ModelInterface,
    ModelVersion,
)

DEEPSPEED_FOLDER, MODELS_FOLDER = "deepspeed", "models"


@dataclasses.dataclass
class Replica:
    """One replica of a model with its interface: executes calls, and stores and restores its state.

    Attributes:
        name: name of the worker in messages, for example ``actor[0]``.
        model: the model; its module is that of the backend after :meth:`initialize`.
        interface: the object whose methods are called.
        backend: prepares the model.
        eval_loader: the dataloader over the evaluation datasets, or None.
        rank: number of the replica.
    """

    name: str
    model: Model
    interface: ModelInterface
    backend: ModelBackend
    eval_loader: Loader | None = None
    rank: int = 0

    def initialize(self, spec: FinetuneSpec, handles: list[str]) -> None:
        """Prepares the model by its backend.

        Raises:
            TypeError: the interface lacks a method that the dataflow calls.
        """
        check_interface(self.interface, handles, self.name)
        prepared = self.backend.initialize(self.model, spec)
        if not isinstance(prepared, Model):
            raise TypeError(
                f"{type(self.backend).__name__} returned a {type(prepared).__name__}: _initialize returns the model"
            )
        self.model = prepared

    def call(self, handle: str, data: NamedArray | None) -> tuple[NamedArray | None, dict[str, Any]]:
        """Executes one call.

        Returns:
            The arrays of the reply, on the processor, and its metadata: ``stats`` by name, ``version`` of the weights
            that were used, ``seconds``, and ``tokens`` in the data or the reply.

        Raises:
            TypeError: the interface returned something that cannot be sent.
        """
        version = self.model.version.global_step
        arrays = None if data is None else recursive_apply(data, lambda value: _to(value, self.model.device))
        begin = time.perf_counter()
        result = getattr(self.interface, handle)(self.model, arrays)
        if self.model.device != "cpu" and torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
        if handle == "train_step" and self.model.version.global_step == version:
            self.model.inc_version()
        reply, stats = _parts(result, f"{type(self.interface).__name__}.{handle} of {self.name}")
        tokens = count_tokens(reply if handle == "generate" else data)
        return reply, {
            "stats": stats,
            "version": version,
            "version_after": self.model.version.global_step,
            "seconds": seconds,
            "tokens": tokens,
        }

    def evaluate(self) -> dict[str, Any]:
        """Returns the statistics of the evaluation datasets; the random streams are as before afterwards."""
        if self.eval_loader is None:
            return {}
        with random_states.untouched():
            result = self.interface.evaluate(self.model, self.eval_loader)
        return _parts(result, f"{type(self.interface).__name__}.evaluate of {self.name}")[1]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of this replica except for what :meth:`store` writes itself."""
        state: dict[str, Any] = {
            "version": dataclasses.asdict(self.model.version),
            "random": random_states.capture(),
        }
        of_interface = getattr(self.interface, "state_dict", None)
        if of_interface is not None:
            state["interface"] = of_interface()
        if self.rank == 0 and not hasattr(self.model.module, "training_files"):
            state["training"] = self._training_state()
        return state

    def _training_state(self) -> dict[str, Any]:
        module = self.model.module
        return dict(module.training_state() if hasattr(module, "training_state") else {"module": module.state_dict()})

    def load_state_dict(self, state: Mapping[str, Any], training: Mapping[str, Any] | None) -> None:
        """Continues from the state that :meth:`state_dict` returned.

        Args:
            state: the state of this replica.
            training: the state of module, optimizer and schedule, which the first replica stored for all of them.
        """
        self.model.version = ModelVersion(**state["version"])
        module = self.model.module
        if training is not None:
            if hasattr(module, "load_training_state"):
                module.load_training_state(training)
            else:
                module.load_state_dict(training["module"])
        if "interface" in state:
            getattr(self.interface, "load_state_dict")(state["interface"])  # noqa: B009  # it has state_dict
        random_states.restore(state["random"])

    def store(self, folder: Path, role: str, *, saves: bool) -> None:
        """Writes what has files of its own: the parts of DeepSpeed, and with ``saves`` the result of ``save``."""
        files = getattr(self.model.module, "training_files", None)
        if files is not None:
            files.store(folder / DEEPSPEED_FOLDER / role)
        if not saves:
            return
        with random_states.untouched(), contextlib.ExitStack() as stack:
            target = folder / MODELS_FOLDER / role
            if self.rank:  # all replicas are called, and the files of one are kept
                target = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            target.mkdir(parents=True, exist_ok=True)
            self.interface.save(self.model, str(target))

    def restore_files(self, folder: Path, role: str) -> None:
        """Reads the files that :meth:`store` wrote, in a folder with those of all replicas."""
        files = getattr(self.model.module, "training_files", None)
        if files is not None:
            files.restore(folder / DEEPSPEED_FOLDER / role)


def check_interface(interface: ModelInterface, handles: list[str], name: str) -> None:
    """Raises TypeError if the class of an interface implements none of its own of a method that is called."""
    if not isinstance(interface, ModelInterface):
        raise TypeError(
            f"the interface of {name} is a {type(interface).__name__}: derive it from api.model.ModelInterface"
        )
    lacks = [handle for handle in handles if getattr(type(interface), handle) is getattr(ModelInterface, handle)]
    if lacks:
        raise TypeError(
            f"the dataflow calls {' and '.join(lacks)} of {name}, and its interface {type(interface).__name__} "
            "does not implement it"
        )


def count_tokens(data: NamedArray | None) -> int:
    """Returns the number of tokens in arrays: those that an ``attention_mask`` marks.

    Without a mask it is the size of the largest matrix of integers, and 0 if there is none.
    """
    if data is None:
        return 0
    arrays = {name: torch.as_tensor(value) for name, value in data.to_dict().items() if _is_array(value)}
    masks = [value for name, value in arrays.items() if name.endswith("attention_mask")]
    if masks:
        return int(max((mask != 0).sum().item() for mask in masks))
    integers = [value for value in arrays.values() if value.dim() == 2 and not value.is_floating_point()]
    return max((value.numel() for value in integers), default=0)


def free_memory(*, empties_cuda_cache: bool) -> None:
    """Gives memory back to the GPU's other users, if the configuration asks for it."""
    if empties_cuda_cache and torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def _is_array(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _to(value: Any, device: str | torch.device) -> Any:  # noqa: ANN401  # an array, a tensor or None
    return torch.as_tensor(value).to(device) if _is_array(value) else value


def _parts(result: object, source: str) -> tuple[NamedArray | None, dict[str, Any]]:
    """Returns the arrays and the statistics of what a method returned."""
    if result is None:
        return None, {}
    if isinstance(result, NamedArray):
        return recursive_apply(
            result, lambda value: value.detach().cpu() if isinstance(value, torch.Tensor) else value
        ), {}
    if isinstance(result, Mapping):
        return None, {str(name): _number(value, f"{name} in the result of {source}") for name, value in result.items()}
    raise TypeError(
        f"{source} returned a {type(result).__name__}: return a NamedArray, a dictionary of numbers or None"
    )


def _number(value: Any, source: str) -> object:  # noqa: ANN401  # whatever an interface returns
    if hasattr(value, "item"):
        size = getattr(value, "size", 1)
        if (size() if callable(size) else size) in (1, torch.Size([]), torch.Size([1])):
            return cast("torch.Tensor", value).item()
        raise TypeError(
            f"{source} has the shape {tuple(getattr(value, 'shape', ()))}: return its mean or another number"
        )
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{source} is a {type(value).__name__}: statistics are numbers")
