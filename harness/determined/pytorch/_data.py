"""Training data by position: batch ``b`` of epoch ``e`` depends only on the seed, ``e`` and ``b``.

Shuffling, augmentation and every other random draw of a dataset use streams that are seeded for one batch, both in a
loader's workers and in this process, whose own streams stay unchanged. A position in the data is therefore a number: a
resumed trial replays nothing, and the number of workers has no effect.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import torch
from torch.utils import data as torch_data

from determined.pytorch import _rng
from determined.pytorch._passes import LoaderPasses, PassStates, SamplerPasses

_ORDER, _CONTENT, _PLAIN = 1, 2, 3
_END = object()
_AHEAD_SECONDS, _AHEAD_BATCHES = 0.002, 16


class DataLoader:
    """A data loader like ``torch.utils.data.DataLoader`` that is sharded over the slots and can resume at any batch.

    Args:
        dataset: a dataset with ``__getitem__`` and ``__len__``.
        batch_size: records per batch of one slot.
        shuffle: shuffle the records in each epoch.
        sampler: yields indexes of records; excludes ``shuffle``.
        batch_sampler: yields lists of indexes; excludes ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: number of worker processes; 0 loads in this process.
        collate_fn: makes a batch from a list of records.
        pin_memory: copy batches into page-locked memory.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch of a worker; 0 waits for ever.
        worker_init_fn: runs in each worker at its start, with the number of the worker.
        multiprocessing_context: how workers are started.
        generator: accepted for compatibility and ignored; the trial's seed determines the order.
        prefetch_factor: batches that each worker loads ahead.
        persistent_workers: keep the workers from one epoch to the next, until the end of the fit.

    Raises:
        TypeError: ``dataset`` is an IterableDataset.
        ValueError: two arguments exclude each other, or ``batch_size`` is below 1.

    >>> loader = DataLoader(range(10), batch_size=4)
    >>> len(loader)
    3
    """

    def __init__(
        self,
        dataset: Any,  # noqa: ANN401  # only the dataset's author knows its records
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,  # noqa: ANN401  # only the dataset's author knows its records
        generator: Any = None,  # noqa: ANN401  # only the dataset's author knows its records
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
    ) -> None:
        if isinstance(dataset, torch_data.IterableDataset):
            raise TypeError(
                "determined.pytorch.DataLoader needs a dataset with __getitem__ and __len__; for an IterableDataset "
                "return a torch DataLoader and call context.experimental.disable_dataset_reproducibility_checks()"
            )
        if batch_sampler is not None and (batch_size not in (None, 1) or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        if sampler is not None and shuffle:
            raise ValueError("sampler excludes shuffle")
        if batch_sampler is None and (batch_size is None or batch_size < 1):
            raise ValueError("batch_size must be at least 1")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn or torch_data.default_collate
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.worker_options: dict[str, Any] = {}
        if num_workers > 0:
            self.worker_options = {
                "timeout": timeout,
                "worker_init_fn": worker_init_fn,
                "multiprocessing_context": multiprocessing_context,
                "prefetch_factor": prefetch_factor,
                "persistent_workers": persistent_workers,
            }

    def __len__(self) -> int:
        """Returns the number of batches of all slots in one epoch."""
        if self.batch_sampler is not None:
            return _length(self.batch_sampler)
        count = _length(self.sampler if self.sampler is not None else self.dataset)
        assert self.batch_size is not None
        return count // self.batch_size if self.drop_last else math.ceil(count / self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        """Yields the batches of epoch 0, for inspecting the data outside of training."""
        return Batches(self, seed=0, rank=0, size=1, repeat=False).epoch(0)


class Data(Protocol):
    """The batches of one slot."""

    def __len__(self) -> int:
        """Returns the number of batches in an epoch."""
        ...

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yields the batches of ``epoch`` from number ``start`` on."""
        ...


class TrainingSource(Data, Protocol):
    """Batches for training, whose position can be saved."""

    def states(self) -> PassStates:
        """Returns the states of the sources that have ``state_dict``, for a checkpoint."""
        ...

    def load_states(self, states: PassStates) -> None:
        """Takes the states of a checkpoint; the next ``epoch`` begins with them."""
        ...


@dataclass
class _BatchPlan:
    """Assigns samples to the batches of an epoch for one slot; the sampler of torch's loader."""

    loader: DataLoader
    seed: int
    rank: int
    size: int
    repeat: bool
    epoch: int = 0
    start: int = 0
    _length: int = field(init=False)
    passes: SamplerPasses | None = field(init=False, default=None)
    """Over the sampler of the user, if there is one."""

    def __post_init__(self) -> None:
        source: Any = self.loader.batch_sampler if self.loader.sampler is None else self.loader.sampler
        if source is not None:
            self.passes = SamplerPasses(
                source, _length(source), lambda number: _rng.apart(_rng.mix(self.seed, _ORDER, number))
            )
        total = len(self.loader)
        if self.repeat:
            # every slot trains equally many batches: the last round repeats batches from the beginning
            self._length = math.ceil(total / self.size)
        else:
            self._length = len(range(self.rank, total, self.size))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[int, int, list[int]]]:
        epoch, start = self.epoch, self.start
        take = self._taker(epoch)
        total = len(self.loader)
        for number in range(start, self._length):
            wide = number * self.size + self.rank
            yield epoch, wide, take(wide % total)

    def _taker(self, epoch: int) -> Callable[[int], list[int]]:
        loader, size = self.loader, self.loader.batch_size
        if loader.sampler is None and loader.batch_sampler is None:
            assert size is not None
            count = len(loader.dataset)
            if not loader.shuffle:
                return lambda number: list(range(number * size, min(count, (number + 1) * size)))
            generator = torch.Generator().manual_seed(_rng.mix(self.seed, _ORDER, epoch))
            order = torch.randperm(count, generator=generator)
            return lambda number: order[number * size : (number + 1) * size].tolist()
        assert self.passes is not None
        items = self.passes.items(epoch)
        if loader.sampler is None:
            return lambda number: list(items[number])
        assert size is not None
        return lambda number: items[number * size : (number + 1) * size]


class _Seeded(torch_data.Dataset[Any]):
    """Makes whole batches, each from random streams of its own."""

    def __init__(self, loader: DataLoader, seed: int) -> None:
        self._dataset = loader.dataset
        self._collate = loader.collate_fn
        self._seed = seed
        # slices tensors at once: no random draws, and the same result as collating rows
        self._tensors: tuple[torch.Tensor, ...] | None = None
        if type(self._dataset) is torch_data.TensorDataset and self._collate is torch_data.default_collate:
            self._tensors = self._dataset.tensors

    def __getitem__(self, item: tuple[int, int, list[int]]) -> Any:  # noqa: ANN401  # only the dataset's author knows its records
        epoch, number, indices = item
        if self._tensors is not None:
            where = torch.tensor(indices)
            return [tensor[where] for tensor in self._tensors]
        _rng.seed_host(_rng.mix(self._seed, _CONTENT, epoch, number))
        fetch = getattr(self._dataset, "__getitems__", None)
        rows = fetch(indices) if fetch is not None else [self._dataset[index] for index in indices]
        return self._collate(rows)

    def here(self, items: Iterable[tuple[int, int, list[int]]]) -> Iterator[Any]:
        """Yields the batches made in this process.

        Small batches are made a few ahead because saving the streams costs 0.1 ms.
        """
        if self._tensors is not None:
            yield from map(self.__getitem__, items)
            return
        source, made = iter(items), deque[Any]()
        while True:
            failure: Exception | None = None
            kept, until = _rng.capture_host(), time.monotonic() + _AHEAD_SECONDS
            try:
                while len(made) < _AHEAD_BATCHES and (item := next(source, None)) is not None:
                    made.append(self[item])
                    if time.monotonic() > until:
                        break
            except Exception as error:
                failure = error  # raised in the place of its batch, after the batches made before it
            finally:
                _rng.restore_host(kept)
            if not made and failure is None:
                return
            while made:
                yield made.popleft()
            if failure is not None:
                raise failure


class Batches:
    """The batches of one slot, from any position of any epoch."""

    def __init__(self, loader: DataLoader, *, seed: int, rank: int, size: int, repeat: bool) -> None:
        self._plan = _BatchPlan(loader, seed, rank, size, repeat)
        self._seeded = _Seeded(loader, seed)
        self._loader: torch_data.DataLoader[Any] | None = None
        if loader.num_workers > 0 or loader.pin_memory:
            self._loader = torch_data.DataLoader(
                self._seeded,
                batch_size=None,
                sampler=self._plan,
                num_workers=loader.num_workers,
                collate_fn=_as_is,
                pin_memory=loader.pin_memory,
                generator=torch.Generator(),  # otherwise each epoch would draw from the training stream
                **loader.worker_options,
            )

    def __len__(self) -> int:
        return len(self._plan)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yields the batches of ``epoch`` from number ``start`` on."""
        self._plan.epoch, self._plan.start = epoch, start
        if self._loader is not None:
            source = iter(self._loader)
            # Torch keeps this iterator for the next epoch. Its workers end with the loader, not with the epoch.
            return map(_as_is, source) if self._loader.persistent_workers else source
        return self._seeded.here(self._plan)

    def states(self) -> PassStates:
        """Returns the states of a sampler that has ``state_dict``."""
        return {} if self._plan.passes is None else self._plan.passes.states.values()

    def load_states(self, states: PassStates) -> None:
        """Takes the states of a checkpoint."""
        if self._plan.passes is not None:
            self._plan.passes.states.load(states)


class PlainBatches:
    """A loader of the user's own.

    The user decides about shards and order; its draws do not advance the training streams.

    A position is reached by reading up to it.
    """

    def __init__(self, loader: Any, *, seed: int) -> None:  # noqa: ANN401  # only the dataset's author knows its records
        self._loader = loader
        self._passes = LoaderPasses(loader, self._streams)
        self._seed = seed

    def __len__(self) -> int:
        return len(self._loader)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yields the batches of ``epoch`` from number ``start`` on."""
        return islice(self._batches(epoch), start, None)

    def states(self) -> PassStates:
        """Returns the states of a loader, or of its samplers, that have ``state_dict``."""
        return self._passes.states.values()

    def load_states(self, states: PassStates) -> None:
        """Takes the states of a checkpoint."""
        self._passes.states.load(states)

    def _batches(self, epoch: int) -> Iterator[Any]:
        self._passes.go_to(epoch)
        with self._streams(epoch):
            source = iter(self._loader)
            ours = _rng.capture_host()

        def read() -> Any:  # noqa: ANN401  # only the dataset's author knows its records
            nonlocal ours
            theirs = _rng.capture_host()
            _rng.restore_host(ours)
            try:
                return next(source, _END)
            finally:
                ours = _rng.capture_host()
                _rng.restore_host(theirs)

        count, length = 0, len(self._loader)
        while (batch := read()) is not _END:
            count += 1
            if count != length:
                yield batch
                continue
            # Training reads no further than to the last batch; the pass ends before it, as a sampler may count there.
            after = read()
            yield batch
            if after is _END:
                return
            yield after

    def _streams(self, epoch: int) -> AbstractContextManager[None]:
        return _rng.apart(_rng.mix(self._seed, _PLAIN, epoch))


def _length(source: object) -> int:
    if not isinstance(source, Sized):
        raise TypeError(f"{type(source).__name__} has no length")
    return len(source)


def _as_is(batch: object) -> object:
    return batch
