"""The data worker: reads batches of its datasets and gives them to the master worker, one batch ahead of it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch.utils.data

from determined_workflows.rlhf.task import dataset_cache, random_states
from determined_workflows.rlhf.task.array_tree import from_dict
from determined_workflows.rlhf.task.config import ExperimentConfig
from determined_workflows.rlhf.task.data import (
    Batch,
    DataBatch,
    Dataset,
    DatasetUtility,
    Loader,
    batches,
    length,
    make_dataloader,
)
from determined_workflows.rlhf.task.role_place import RolePlace
from determined_workflows.rlhf.task.set_checkpoint import FOLDER, SetCheckpoint
from determined_workflows.rlhf.task.streams import Request
from determined_workflows.rlhf.task.worker_config import SAFE_METHODS, DataWorker, ModelWorker
from determined_workflows.rlhf.task.worker_loop import Answer, serve

DESCRIBE, FETCH = "describe", "fetch"


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
        self._ahead: Batch | None = None
        self._begin_epoch()

    def next(self) -> DataBatch:
        """Returns the next batch. :meth:`read_ahead` reads the one after it."""
        if self._given == self._steps_per_epoch:
            self._epoch, self._given, self._ahead = self._epoch + 1, 0, None
            self._begin_epoch()
        batch = self._ahead if self._ahead is not None else self._read()
        self._ahead = None
        self._given += 1
        step = self._given - 1
        return DataBatch(batch, self._epoch, step, self._epoch * self._steps_per_epoch + step)

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
        self._begin_epoch()
        for _ in range(self._given + (self._ahead is not None)):
            self._read()
        random_states.restore(state["random"])

    def _begin_epoch(self) -> None:
        self._random_at_epoch = random_states.capture()
        self._iterator: Iterator[Batch] = batches(self._loader, source=self._source)

    def _read(self) -> Batch:
        try:
            return next(self._iterator)
        except StopIteration:
            raise ValueError(
                f"{self._source} ended before the {self._steps_per_epoch} batches that its length promised"
            ) from None


def make_loader(
    datasets: list[Any],
    dataloader: Any,  # noqa: ANN401  # any object with type_ and args
    util: DatasetUtility,
    cache: "dataset_cache.DatasetCache | None",
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


class DataWorkerProcess:
    """The worker of one process: builds its datasets and serves their batches.

    Args:
        config: the experiment.
        place: which worker this process is.
        checkpoint: stores and restores the set.
    """

    def __init__(self, config: ExperimentConfig, place: RolePlace, checkpoint: SetCheckpoint) -> None:
        self._place = place
        self._checkpoint = checkpoint
        self._config = config.data_worker[place.index]
        self._source = f"the dataloader of {place.name}"
        self._reader: BatchReader | None = None
        random_states.seed_all(self._config.seed)
        tokenizer = self._tokenizer()
        util = utility(self._config.seed, place.index, place, tokenizer)
        cache = cache_of(self._config, self._config.tokenizer_name_or_path or "")
        self._loader = make_loader(self._config.datasets, self._config.dataloader, util, cache)

    def run(self) -> None:
        """Serves until the master worker ends the training."""
        handlers = {DESCRIBE: self._describe, FETCH: self._fetch}
        serve(self, handlers, self._place, self._checkpoint, method_of(self._config))

    def initialize(self, request: Request) -> None:
        random_states.seed_all(self._config.seed, self._place.index)
        self._reader = BatchReader(self._loader, self._source, int(request.metadata["steps_per_epoch"]))

    def restore(self, checkpoint: SetCheckpoint, folder: Path) -> None:
        self._existing_reader.load_state_dict(checkpoint.read(folder))

    def state_dict(self) -> dict[str, Any]:
        return self._existing_reader.state_dict()

    def store_files(self, folder: Path, *, saves: bool) -> None:
        """Writes nothing: a data worker has no files."""

    def after_reply(self) -> None:
        if self._reader is not None:
            self._reader.read_ahead()

    @property
    def _existing_reader(self) -> BatchReader:
        assert self._reader is not None, "the master worker initializes before it asks for anything else"
        return self._reader

    def _describe(self, request: Request) -> Answer:
        return None, {"steps_per_epoch": length(self._loader, self._source), "batch_size": batch_size(self._loader)}

    def _fetch(self, request: Request) -> Answer:
        batch = self._existing_reader.next()
        return from_dict(batch.data), {"epoch": batch.epoch, "epoch_step": batch.epoch_step}

    def _tokenizer(self) -> Any:  # noqa: ANN401  # transformers is imported when used
        if not self._config.tokenizer_name_or_path:
            return None
        from determined_workflows.rlhf.task.language_models import load_hf_tokenizer

        return load_hf_tokenizer(self._config.tokenizer_name_or_path)


def utility(seed: int, rank: int, place: RolePlace, tokenizer: Any) -> DatasetUtility:  # noqa: ANN401  # as above
    """Returns what the datasets of a worker learn of it."""
    return DatasetUtility(seed, rank, len(place.roles[place.role]), tokenizer)


def cache_of(config: DataWorker | ModelWorker, tokenizer: str) -> dataset_cache.DatasetCache | None:
    """Returns the dataset cache of a worker, or None if its configuration wants none."""
    if not config.use_dataset_cache or config.worker_info is None:
        return None
    run = os.environ.get(FOLDER)
    root = Path(config.dataset_cahce_root or (Path(run) if run else Path.home() / ".cache" / "detent") / "datasets")
    return dataset_cache.DatasetCache(
        root, config.worker_info.experiment_name, config.worker_info.trial_name, tokenizer
    )


def method_of(config: DataWorker | ModelWorker) -> str:
    """Returns the codec of a worker's stream; those that pickle are replaced by the safe one nearest to them."""
    stream = config.stream
    return SAFE_METHODS["raw_bytes" if isinstance(stream, str) else stream.serialization_method]
