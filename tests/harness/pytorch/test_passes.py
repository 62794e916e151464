"""The position in the data is a number for every source of order, also in a process that begins in a later epoch."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch.utils import data as torch_data

from determined.pytorch import DataLoader
from determined.pytorch._data import Batches, PlainBatches
from determined.pytorch.samplers import RepeatSampler, ReproducibleShuffleBatchSampler, ReproducibleShuffleSampler

COUNT = 12
DATA = torch_data.TensorDataset(torch.arange(COUNT))


class Counting:
    """Shifts its items by the number of passes that it has completed."""

    def __init__(self) -> None:
        self.passes = 0

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[int]:
        yield from ((index + self.passes) % COUNT for index in range(COUNT))
        self.passes += 1


class Stream(torch_data.IterableDataset[Any]):
    """Begins each pass where the one before it ended; a copy of a worker begins anew."""

    def __init__(self) -> None:
        self.position = 0

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = torch_data.get_worker_info()
        for _ in range(COUNT if worker is None else COUNT // worker.num_workers):
            yield torch.tensor([self.position])
            self.position += 1


class OwnLoader:
    """A loader that is no torch loader and counts its passes."""

    def __init__(self) -> None:
        self.passes = 0

    def __len__(self) -> int:
        return 4

    def __iter__(self) -> Iterator[list[torch.Tensor]]:
        self.passes += 1
        yield from ([torch.tensor([self.passes, number])] for number in range(4))


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(11)


def batched(sampler: Any) -> Any:
    return torch_data.BatchSampler(sampler, 3, drop_last=False)


OURS: dict[str, Callable[[int], DataLoader]] = {
    "shuffle=True": lambda workers: DataLoader(DATA, 3, shuffle=True, num_workers=workers),
    "ReproducibleShuffleSampler": lambda workers: DataLoader(
        DATA, 3, sampler=ReproducibleShuffleSampler(range(COUNT), seed=5), num_workers=workers
    ),
    "ReproducibleShuffleBatchSampler": lambda workers: DataLoader(
        DATA, batch_sampler=ReproducibleShuffleBatchSampler(batched(range(COUNT)), seed=5), num_workers=workers
    ),
    "RandomSampler with a generator": lambda workers: DataLoader(
        DATA, 3, sampler=torch_data.RandomSampler(DATA, generator=generator()), num_workers=workers
    ),
    "batch sampler over one": lambda workers: DataLoader(
        DATA, batch_sampler=batched(torch_data.RandomSampler(DATA, generator=generator())), num_workers=workers
    ),
    "sampler with a counter": lambda workers: DataLoader(DATA, 3, sampler=Counting(), num_workers=workers),
    "sampler without an end": lambda workers: DataLoader(
        DATA, 3, sampler=RepeatSampler(range(COUNT)), num_workers=workers
    ),
}
PLAIN: dict[str, Callable[[int], Any]] = {
    "torch, generator=": lambda workers: torch_data.DataLoader(
        DATA, 3, shuffle=True, generator=generator(), num_workers=workers
    ),
    "torch, shuffle=True": lambda workers: torch_data.DataLoader(DATA, 3, shuffle=True, num_workers=workers),
    "torch, sampler with a counter": lambda workers: torch_data.DataLoader(
        DATA, 3, sampler=Counting(), num_workers=workers
    ),
    "torch, batch sampler": lambda workers: torch_data.DataLoader(
        DATA, batch_sampler=batched(torch_data.RandomSampler(DATA, generator=generator())), num_workers=workers
    ),
    "torch, iterable dataset": lambda workers: torch_data.DataLoader(
        Stream(), batch_size=None, collate_fn=lambda value: [value], num_workers=workers
    ),
    "a loader with a counter": lambda _workers: OwnLoader(),
    "torch, DistributedSampler": lambda workers: torch_data.DataLoader(
        DATA,
        3,
        sampler=torch_data.DistributedSampler(DATA, num_replicas=1, rank=0, seed=4),
        num_workers=workers,
    ),
}


def opened(name: str, workers: int, *, rank: int = 0, size: int = 1) -> Batches | PlainBatches:
    if name in PLAIN:
        return PlainBatches(PLAIN[name](workers), seed=9)
    return Batches(OURS[name](workers), seed=9, rank=rank, size=size, repeat=True)


def taken(batches: Batches | PlainBatches, epoch: int, start: int = 0) -> list[list[int]]:
    """Reads as training does: no further than to the last batch."""
    return [each[0].tolist() for each in islice(batches.epoch(epoch, start), len(batches) - start)]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [*OURS, *PLAIN])
def test_a_process_that_begins_in_any_epoch_goes_on_with_the_same_batches(name: str, workers: int):
    without_a_break = opened(name, workers)
    epochs = [taken(without_a_break, epoch) for epoch in range(4)]
    for epoch in (0, 2):
        for start in (0, 1, 3):
            resumed = opened(name, workers)
            assert taken(resumed, epoch, start) == epochs[epoch][start:]
            assert taken(resumed, epoch + 1) == epochs[epoch + 1]


@pytest.mark.parametrize("name", OURS)
def test_each_of_two_slots_goes_on_with_its_own_share(name: str):
    for rank in range(2):
        first = opened(name, 0, rank=rank, size=2)
        epochs = [taken(first, epoch) for epoch in range(3)]
        assert taken(opened(name, 0, rank=rank, size=2), 2, 1) == epochs[2][1:]


@pytest.mark.parametrize("name", [*OURS, *(name for name in PLAIN if "counter" not in name and "iterable" not in name)])
def test_a_validation_reads_the_same_batches_each_time(name: str):
    validation = opened(name, 0)
    assert taken(validation, 0) == taken(validation, 0)
