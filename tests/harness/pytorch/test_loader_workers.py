"""The end of a data loader's worker processes."""

import contextlib
import multiprocessing
import os

import pytest
from tests.support.attempts import attempt
from torch.utils.data import DataLoader

from determined import pytorch
from determined.pytorch._data import Batches
from determined.pytorch._loop import _Closing
from determined.pytorch.deepspeed._stream import Stream

pytestmark = pytest.mark.torch


def test_workers_of_a_loader_end_with_the_block_although_it_was_not_read_to_its_end():
    batches = iter(DataLoader(list(range(8)), num_workers=1))
    workers = set(multiprocessing.active_children())
    with contextlib.closing(_Closing(batches)) as source:
        next(iter(source))
        assert workers
    assert workers.isdisjoint(multiprocessing.active_children())


class ProcessIds:
    """A dataset whose records name the process that loads them."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return index, os.getpid()


class PersistentTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.seen = []
        self.processes = set()

    def build_training_data_loader(self):
        return pytorch.DataLoader(ProcessIds(), batch_size=1, num_workers=1, persistent_workers=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(ProcessIds(), batch_size=1, num_workers=1, persistent_workers=True)

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.seen.append(int(batch[0]))
        self.processes.add(int(batch[1]))
        return {"loss": 0.0}

    def evaluate_batch(self, batch, batch_idx):
        return {"validation_loss": 0.0}


def test_persistent_workers_live_from_epoch_to_epoch_and_end_with_the_fit(tmp_path):
    before = set(multiprocessing.active_children())
    fit = {"max_length": pytorch.Batch(15), "validation_period": pytorch.Batch(6)}
    trial = attempt(PersistentTrial, tmp_path, fit=fit).trial
    assert trial.seen == [*range(6), *range(6), *range(3)]
    assert len(trial.processes) == 1
    assert set(multiprocessing.active_children()) <= before


def test_persistent_workers_continue_inside_an_epoch_that_was_left():
    loader = pytorch.DataLoader(ProcessIds(), batch_size=1, num_workers=1, persistent_workers=True)
    stream = Stream(Batches(loader, seed=0, rank=0, size=1, repeat=True))
    first = [int(next(stream)[0]) for _ in range(2)]
    stream.close()
    assert first + [int(next(stream)[0]) for _ in range(6)] == [0, 1, 2, 3, 4, 5, 0, 1]
