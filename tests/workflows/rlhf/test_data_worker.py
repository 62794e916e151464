"""Batches of a data worker: read ahead, and continued in another process with the same batches and random streams."""

from pathlib import Path
from typing import Any

import pytest
import torch

from determined_workflows.rlhf.task import data, data_worker, dataset_cache, random_states


class Noisy(torch.utils.data.Dataset[Any]):
    """Items that draw from the global random stream."""

    created = 0

    def __init__(self, util: data.DatasetUtility, items: int = 12) -> None:
        self.items = items
        Noisy.created += 1

    def __len__(self) -> int:
        return self.items

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"index": torch.tensor([index]), "noise": torch.rand(1)}


data.register_dataset("test-noisy", Noisy)
UTIL = data.DatasetUtility(1, 0, 1)


def reader(steps: int = 3) -> data_worker.BatchReader:
    loader = data_worker.make_loader(["test-noisy"], Loader(), UTIL, None)
    random_states.seed_all(7)
    return data_worker.BatchReader(loader, "the loader", steps)


class Loader:
    type_ = "default"
    args: dict[str, object] = {"batch_size": 4}


def take(source: data_worker.BatchReader, count: int) -> list[Any]:
    taken = []
    for _ in range(count):
        batch = source.next()
        index, noise = (batch.data[name].flatten().tolist() for name in ("index", "noise"))
        taken.append((index, noise, batch.epoch, batch.epoch_step))
        source.read_ahead()
    return taken


def test_epochs_follow_each_other_in_another_order() -> None:
    taken = take(reader(), 6)
    assert [(epoch, step) for _, _, epoch, step in taken] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert sorted(index for indices, *_ in taken[:3] for index in indices) == list(range(12))
    assert taken[0][0] != taken[3][0]


@pytest.mark.parametrize("before", range(7))
def test_a_restored_reader_gives_the_batches_of_one_that_was_not_stopped(before: int) -> None:
    straight = take(reader(), 8)
    first = reader()
    taken = take(first, before)
    state = first.state_dict()
    torch.rand(100)
    second = reader()
    second.load_state_dict(state)
    assert taken + take(second, 8 - before) == straight


def test_only_the_agreed_steps_of_an_epoch_are_used() -> None:
    assert [(epoch, step) for *_, epoch, step in take(reader(steps=2), 4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_loader_that_ends_early_is_named() -> None:
    source = reader(steps=4)
    with pytest.raises(ValueError, match="the loader ended before the 4 batches that its length promised"):
        take(source, 4)


def test_several_datasets_follow_each_other() -> None:
    loader = data_worker.make_loader(["test-noisy", "test-noisy"], Loader(), UTIL, None)
    assert data.length(loader.dataset, "both") == 24


def test_a_cached_dataset_is_made_once(tmp_path: Path) -> None:
    cache = dataset_cache.DatasetCache(tmp_path, "exp", "trial", "tokenizer")
    before = Noisy.created
    first = dataset_cache.make("test-noisy", UTIL, cache)
    second = dataset_cache.make("test-noisy", UTIL, cache)
    assert Noisy.created == before + 1
    assert [float(first[index]["noise"]) for index in range(12)] == [
        float(second[index]["noise"]) for index in range(12)
    ]
    assert [path.parent for path in tmp_path.rglob("*.pt")] == [tmp_path / "exp" / "trial"]


@pytest.mark.parametrize(
    ("util", "tokenizer"),
    [(data.DatasetUtility(2, 0, 1), "tokenizer"), (data.DatasetUtility(1, 1, 2), "tokenizer"), (UTIL, "another")],
)
def test_another_seed_rank_or_tokenizer_has_another_file(
    tmp_path: Path, util: data.DatasetUtility, tokenizer: str
) -> None:
    one = dataset_cache.DatasetCache(tmp_path, "exp", "trial", "tokenizer").path("test-noisy", {}, UTIL)
    assert dataset_cache.DatasetCache(tmp_path, "exp", "trial", tokenizer).path("test-noisy", {}, util) != one
