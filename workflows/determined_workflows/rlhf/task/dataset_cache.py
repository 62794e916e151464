"""The cache of datasets: items that were made once, for example tokenized, are read from a file afterwards."""

import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils.data

from determined_workflows.rlhf.task.data import (
    Batch,
    Dataset,
    DatasetUtility,
    checked_item,
    length,
    make_dataset,
    type_and_args,
)


class CachedDataset(torch.utils.data.Dataset[Batch]):
    """Items from the cache. It has nothing of the original dataset but its items."""

    def __init__(self, items: Sequence[Batch]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Batch:
        return self._items[index]


@dataclass(frozen=True)
class DatasetCache:
    """Files of one trial's datasets: ``root/EXPERIMENT/TRIAL/NAME-seedS-R-of-N-HASH.pt``.

    ``tokenizer`` is its name or path: another one makes other items, and therefore another file.
    """

    root: Path
    experiment: str
    trial: str
    tokenizer: str

    def path(self, name: str, args: dict[str, Any], util: DatasetUtility) -> Path:
        """Returns the file of a dataset."""
        facts = json.dumps([name, args, self.tokenizer], sort_keys=True, default=repr)
        mark = hashlib.sha256(facts.encode()).hexdigest()[:12]
        file = f"{name}-seed{util.seed}-{util.ddp_rank}-of-{util.world_size}-{mark}.pt"
        return self.root / self.experiment / self.trial / file


def make(cfg: Any, util: DatasetUtility, cache: DatasetCache | None) -> Dataset:  # noqa: ANN401  # any object with type_ and args
    """Returns the dataset of a configuration, from the cache if there is one; writes it there the first time.

    Raises:
        DataError: an item is no dictionary of tensors.
    """
    if cache is None:
        return make_dataset(cfg, util)
    name, args = type_and_args(cfg)
    path = cache.path(name, args, util)
    if path.is_file():
        return CachedDataset(torch.load(path, weights_only=True))
    dataset = make_dataset(cfg, util)
    items = [
        checked_item(dataset[index], source=f"item {index} of dataset {name}")
        for index in range(length(dataset, f"dataset {name}"))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    # another name first: a worker that is killed while it writes leaves no half file
    partial = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    torch.save(items, partial)
    os.replace(partial, path)
    return CachedDataset(items)
