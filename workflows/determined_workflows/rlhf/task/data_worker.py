"""The data worker: reads batches of its datasets and gives them to the master worker, one batch ahead of it."""

from collections.abc import Iterator
from typing import Any

import torch.utils.data

from determined_workflows.rlhf.task import dataset_cache, random_states
from determined_workflows.rlhf.task.data import (
    Batch,
    Dataset,
    DatasetUtility,
    Loader,
    batches,
    length,
    make_dataloader,
)


class BatchReader:
    """Reads a loader again and again and knows its position, so that another process can continue in the same place.

    Its state has the random streams at the beginning of the epoch and at present, and the batch that was read ahead. A
    restored reader reads the epoch again up to the position, because any loader can do that.

    Args:
        loader: the dataloader.
        source: name of it in messages.
        steps_per_epoch: batches that are used of each pass; at most the loader's length.
    """

    def __init__(self, loader: Loader, source: str, steps_per_epoch: int) -> None:
        self._loader = loader
        self._source = source
        self._steps_per_epoch = steps_per_epoch
        self._epoch = self._given = 0
        self._begin_epoch()

    def next(self) -> tuple[Batch, int, int]:
        """Returns the next batch, its epoch and its step in the epoch. :meth:`read_ahead` reads the one after it."""
        if self._given == self._steps_per_epoch:
            self._epoch, self._given = self._epoch + 1, 0
            self._begin_epoch()
        batch = self._ahead if self._ahead is not None else self._read()
        self._ahead = None
        self._given += 1
        return batch, self._epoch, self._given - 1

    def read_ahead(self) -> None:
        """Reads the next batch of this epoch, unless it was read already or the epoch is over."""
        if self._ahead is None and self._given < self._steps_per_epoch:
            self._ahead = self._read()

    def state_dict(self) -> dict[str, Any]:
        """Returns the position, the random streams and the batch that was read ahead."""
        return {
            "epoch": self._epoch,
            "given": self._given,
            "ahead": self._ahead,
            "random_at_epoch": self._random_at_epoch,
            "random": random_states.capture(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from the state that :meth:`state_dict` returned."""
        self._epoch, self._given, self._ahead = int(state["epoch"]), int(state["given"]), state["ahead"]
        random_states.restore(state["random_at_epoch"])
        self._begin_epoch(keep_ahead=True)
        for _ in range(self._given + (self._ahead is not None)):
            self._read()
        random_states.restore(state["random"])

    def _begin_epoch(self, *, keep_ahead: bool = False) -> None:
        self._random_at_epoch = random_states.capture()
        self._iterator: Iterator[Batch] = batches(self._loader, source=self._source)
        if not keep_ahead:
            self._ahead: Batch | None = None

    def _read(self) -> Batch:
        try:
            return next(self._iterator)
        except StopIteration:
            raise ValueError(
                f"{self._source} ended before the {self._steps_per_epoch} batches that its length promised"
            ) from None


def make_loader(
    datasets: list[Any], dataloader: Any, util: DatasetUtility, cache: "dataset_cache.DatasetCache | None"  # noqa: ANN401  # any object with type_ and args
) -> Loader:
    """Returns the dataloader over all datasets of one worker, one after another.

    Raises:
        DataError: a dataset is empty or smaller than a batch, or an item is no dictionary of tensors.
        UnknownName: a name is not registered.
    """
    made: list[Dataset] = [dataset_cache.make(dataset, util, cache) for dataset in datasets]
    dataset = made[0] if len(made) == 1 else torch.utils.data.ConcatDataset(made)
    return make_dataloader(dataloader, dataset)


def batch_size(loader: Loader) -> int:
    """Returns the number of items of a batch; 0 if the loader does not say."""
    return int(getattr(loader, "batch_size", None) or 0)


def steps_of_epoch(loader: Loader) -> int:
    """Returns the number of batches of one pass."""
    return length(loader, "the dataloader")
