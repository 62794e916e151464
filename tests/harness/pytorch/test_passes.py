"""Resuming in the middle of the data: any process can begin at any batch of any epoch, for every source of order."""

from itertools import islice

import pytest
from tests.support.data_sources import OURS, PLAIN

from determined.pytorch._data import Batches, PlainBatches


def opened(name: str, workers: int, *, rank: int = 0, size: int = 1) -> Batches | PlainBatches:
    if name in PLAIN:
        return PlainBatches(PLAIN[name](workers), seed=9)
    return Batches(OURS[name](workers), seed=9, rank=rank, size=size, repeat=True)


def taken(batches: Batches | PlainBatches, epoch: int, start: int = 0) -> list[list[int]]:
    """Reads batches as training does: up to the last batch and no further."""
    return [batch[0].tolist() for batch in islice(batches.epoch(epoch, start), len(batches) - start)]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [*OURS, *PLAIN])
def test_a_process_that_begins_in_any_epoch_reads_the_same_batches(name: str, workers: int):
    uninterrupted = opened(name, workers)
    epochs = [taken(uninterrupted, epoch) for epoch in range(4)]
    for epoch in (0, 2):
        for start in (0, 1, 3):
            resumed = opened(name, workers)
            assert taken(resumed, epoch, start) == epochs[epoch][start:]
            assert taken(resumed, epoch + 1) == epochs[epoch + 1]


@pytest.mark.parametrize("name", OURS)
def test_each_of_two_slots_resumes_with_its_own_share(name: str):
    for rank in range(2):
        first = opened(name, 0, rank=rank, size=2)
        epochs = [taken(first, epoch) for epoch in range(3)]
        assert taken(opened(name, 0, rank=rank, size=2), 2, 1) == epochs[2][1:]


@pytest.mark.parametrize("name", [*OURS, *(name for name in PLAIN if "counter" not in name and "iterable" not in name)])
def test_a_validation_reads_the_same_batches_each_time(name: str):
    validation = opened(name, 0)
    assert taken(validation, 0) == taken(validation, 0)
