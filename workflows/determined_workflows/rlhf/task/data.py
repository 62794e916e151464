"""``api.data``: batches, datasets and dataloaders of RLHF experiments.

A dataset is a class whose first parameter is a :class:`DatasetUtility`; its items are dictionaries of tensors. A
dataloader is a function that takes the dataset and returns what yields dictionaries of tensors with a common first
dimension. Both are registered by name, and a configuration selects them by ``type_`` and ``args``.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import torch
import torch.utils.data

from determined_workflows.rlhf.task.registry import DATALOADERS, DATASETS

DEFAULT_BATCH_SIZE = 8
DEFAULT_EVAL_BATCH_SIZE = 16

Batch = dict[str, torch.Tensor]


class DataError(ValueError):
    """A dataset or dataloader broke the contract of this module. The text names it and says what to do."""


@dataclasses.dataclass
class DataBatch:
    """One batch with its position in the training.

    Attributes:
        data: tensors by name; the first dimension of each is the batch.
        epoch: number of the epoch, from 0.
        epoch_step: number of the step in its epoch, from 0.
        global_step: number of the step in the training, from 0.
    """

    data: Batch
    epoch: int
    epoch_step: int
    global_step: int


@dataclasses.dataclass
class DatasetUtility:
    """What a dataset needs to know of the worker that loads it: the first argument of every dataset.

    Attributes:
        seed: seed of the data worker; the same on all data workers.
        ddp_rank: number of this data worker, from 0.
        world_size: number of data workers. A dataset takes the items of its ``ddp_rank``.
        tokenizer: a Hugging Face tokenizer, or None if the worker has none. Without a padding token it pads with the
            token that ends a text.

    Raises:
        ValueError: the rank is not below the size, or the tokenizer has no token to pad with.
    """

    seed: int
    ddp_rank: int
    world_size: int
    tokenizer: Any = None

    def __post_init__(self) -> None:
        if not 0 <= self.ddp_rank < self.world_size:
            raise ValueError(f"ddp_rank must be from 0 to world_size - 1, not {self.ddp_rank} of {self.world_size}")
        if self.tokenizer is not None and self.tokenizer.pad_token_id is None:
            if self.tokenizer.eos_token_id is None:
                raise ValueError("the tokenizer has neither a padding token nor one that ends a text: set pad_token")
            self.tokenizer.pad_token_id = self.tokenizer.eos_token_id


def get_shuffle_indices(seed: int, size: int) -> list[int]:
    """Returns the numbers below ``size`` in an order that depends on ``seed`` alone.

    >>> sorted(get_shuffle_indices(1, 4))
    [0, 1, 2, 3]
    """
    return [int(index) for index in torch.randperm(size, generator=torch.Generator().manual_seed(seed))]


def checked_item(item: object, *, source: str) -> Batch:
    """Returns the item if it is a dictionary of tensors. Raises DataError that names its source and the wrong part."""
    if not isinstance(item, Mapping):
        raise DataError(f"{source} is {_article(item)}; return a dictionary of tensors")
    for name, value in item.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise DataError(f"{source}: {name!r} is {_article(value)}; return a dictionary of tensors by name")
    if not item:
        raise DataError(f"{source} is an empty dictionary; return at least one tensor")
    return dict(item)


def checked_batch(batch: object, *, source: str) -> Batch:
    """Like :func:`checked_item`, for tensors that must have the batch as their common first dimension."""
    checked = checked_item(batch, source=source)
    sizes = {name: tuple(value.shape) for name, value in checked.items()}
    if any(not shape for shape in sizes.values()) or len({shape[0] for shape in sizes.values()}) > 1:
        told = ", ".join(f"{name} {shape}" for name, shape in sizes.items())
        raise DataError(f"{source}: the tensors have no common first dimension: {told}")
    return checked


def stacked(items: Sequence[object], *, dataset: str = "the dataset") -> Batch:
    """Returns one batch of items whose tensors have equal shapes; ``label`` becomes ``labels``, as in transformers.

    Raises:
        DataError: an item is no dictionary of tensors, or the items differ in names or shapes.
    """
    checked = [checked_item(item, source=f"an item of {dataset}") for item in items]
    names = checked[0].keys()
    for item in checked[1:]:
        if item.keys() != names:
            raise DataError(f"items of {dataset} differ in their names: {', '.join(names)} and {', '.join(item)}")
    batch = {}
    for name in names:
        shapes = sorted({tuple(item[name].shape) for item in checked})
        if len(shapes) > 1:
            raise DataError(
                f"{name} has the shapes {shapes[0]} and {shapes[-1]} in one batch of {dataset}: pad the items to one "
                "length in the dataset, or register a dataloader with a collate_fn that does"
            )
        batch["labels" if name in ("label", "label_ids") else name] = torch.stack([item[name] for item in checked])
    return batch


Dataset = torch.utils.data.Dataset[Any]
Loader = torch.utils.data.DataLoader[Any]


def register_dataset(name: str, dataset_cls: Callable[..., Dataset]) -> None:
    """Registers a dataset class. Its first parameter is a :class:`DatasetUtility`, the others come from ``args``."""
    DATASETS.register(name, dataset_cls)


def make_dataset(cfg: Any, util: DatasetUtility) -> Dataset:  # noqa: ANN401  # any object with type_ and args
    """Returns the dataset of a configuration.

    Args:
        cfg: a ``Dataset`` of the configuration: ``type_`` and ``args``. A string is a name without arguments.
        util: what the dataset learns of its worker.

    Raises:
        UnknownName: no dataset has this name.
        DataError: the dataset is empty or has no length.
    """
    name, args = type_and_args(cfg)
    dataset = cast("Dataset", DATASETS.get(name)(util, **args))
    if length(dataset, f"dataset {name}") == 0:
        raise DataError(f"dataset {name} of data worker {util.ddp_rank} of {util.world_size} has no items")
    return dataset


def register_dataloader(name: str, dataloader_cls: Callable[..., Loader]) -> None:
    """Registers a dataloader: a function or class that takes the dataset and the ``args`` of the configuration."""
    DATALOADERS.register(name, dataloader_cls)


def make_dataloader(cfg: Any, dataset: Dataset) -> Loader:  # noqa: ANN401  # any object with type_ and args
    """Returns the dataloader of a configuration over a dataset.

    Raises:
        UnknownName: no dataloader has this name.
        DataError: the dataset is smaller than one batch.
    """
    name, args = type_and_args(cfg)
    loader = cast("Loader", DATALOADERS.get(name)(dataset, **args))
    if length(loader, f"dataloader {name}") == 0:
        size = getattr(loader, "batch_size", None)
        raise DataError(
            f"a dataset of {length(dataset, 'the dataset')} items is smaller than one batch of dataloader {name}"
            + (f", {size}: lower its batch_size" if size else "")
        )
    return loader


def type_and_args(cfg: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401  # any object with type_ and args
    """Returns name and arguments of one part of a configuration; a string is a name alone."""
    return (cfg, {}) if isinstance(cfg, str) else (str(cfg.type_), dict(cfg.args or {}))


def length(sized: object, what: str) -> int:
    """Returns ``len(sized)``. Raises DataError if it has no length."""
    try:
        return len(sized)  # type: ignore[arg-type]
    except TypeError:
        raise DataError(f"{what} has no length: a worker needs it to count the steps of an epoch") from None


def batches(loader: Loader, *, source: str) -> Iterator[Batch]:
    """Yields the checked batches of one pass over a loader."""
    for batch in loader:
        yield checked_batch(batch, source=source)


def _article(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _loader(default: int, *, shuffle: bool, drop_last: bool) -> Callable[..., Loader]:
    def make(dataset: Dataset, batch_size: int = default, **options: Any) -> Loader:  # noqa: ANN401  # torch's options
        name = type(dataset).__name__
        options = {
            "shuffle": shuffle,
            "drop_last": drop_last,
            "collate_fn": functools.partial(stacked, dataset=name),
            **options,
        }
        return torch.utils.data.DataLoader(dataset, batch_size, **options)

    return make


register_dataloader("default", _loader(DEFAULT_BATCH_SIZE, shuffle=True, drop_last=True))
register_dataloader("default_eval", _loader(DEFAULT_EVAL_BATCH_SIZE, shuffle=False, drop_last=False))
