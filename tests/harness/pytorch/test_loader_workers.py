"""The end of a data loader's worker processes."""

import contextlib
import multiprocessing

import pytest
from torch.utils.data import DataLoader

from determined.pytorch._loop import _Closing

pytestmark = pytest.mark.torch


def test_workers_of_a_loader_end_with_the_block_although_it_was_not_read_to_its_end():
    batches = iter(DataLoader(list(range(8)), num_workers=1))
    workers = set(multiprocessing.active_children())
    with contextlib.closing(_Closing(batches)) as source:
        next(iter(source))
        assert workers
    assert workers.isdisjoint(multiprocessing.active_children())
