"""Datasets and dataloaders by name: what they give, and what is refused with its name."""

from typing import Any

import pytest
import torch

from determined_workflows.rlhf.task import data
from determined_workflows.rlhf.task.registry import UnknownName


class Numbers(torch.utils.data.Dataset[Any]):
    def __init__(self, util: data.DatasetUtility, items: int = 20) -> None:
        self.own = list(range(items))[util.ddp_rank :: util.world_size]

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"number": torch.tensor([self.own[index]]), "label": torch.tensor(index)}


class Broken(torch.utils.data.Dataset[Any]):
    def __init__(self, util: data.DatasetUtility, item: object) -> None:
        self.item = item

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> object:
        return self.item(index) if callable(self.item) else self.item


data.register_dataset("test-numbers", Numbers)
data.register_dataset("test-broken", Broken)


class Config:
    def __init__(self, type_: str, **args: object) -> None:
        self.type_, self.args = type_, args


class Tokenizer:
    pad_token_id: int | None = None
    eos_token_id: int | None = 3


def dataset(**args: object) -> Any:
    return data.make_dataset(Config("test-numbers", **args), data.DatasetUtility(1, 0, 1))


def test_the_default_loader_shuffles_and_drops_an_incomplete_batch() -> None:
    torch.manual_seed(0)
    batches = list(data.make_dataloader("default", dataset()))
    assert [len(batch["number"]) for batch in batches] == [8, 8]
    assert [int(number) for batch in batches for number in batch["number"]] != list(range(16))


def test_the_default_eval_loader_keeps_order_and_rest() -> None:
    batches = list(data.make_dataloader("default_eval", dataset()))
    assert [len(batch["number"]) for batch in batches] == [16, 4]
    assert [int(number) for batch in batches for number in batch["number"]] == list(range(20))


def test_a_label_is_called_labels_as_in_transformers() -> None:
    assert set(next(iter(data.make_dataloader("default", dataset())))) == {"number", "labels"}


def test_options_of_torch_reach_the_loader() -> None:
    loader = data.make_dataloader(Config("default", batch_size=5, shuffle=False), dataset())
    assert [int(number) for number in next(iter(loader))["number"]] == [0, 1, 2, 3, 4]


def test_an_empty_dataset_is_refused() -> None:
    with pytest.raises(data.DataError, match="test-numbers of data worker 0 of 1 has no items"):
        dataset(items=0)


def test_a_dataset_smaller_than_a_batch_is_refused() -> None:
    with pytest.raises(data.DataError, match="dataset of 7 items is smaller than one batch of dataloader default, 8"):
        data.make_dataloader("default", dataset(items=7))


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (torch.zeros(2), "an item of Broken is a Tensor; return a dictionary of tensors"),
        ({"x": [1, 2]}, "'x' is a list; return a dictionary of tensors"),
        ({}, "empty dictionary"),
        (lambda index: {"x": torch.zeros(1 + index)}, r"x has the shapes \(1,\) and \(8,\).*pad the items"),
        (lambda index: {f"x{index}": torch.zeros(1)}, "differ in their names: x0 and x1"),
    ],
)
def test_an_item_that_makes_no_batch_is_named(item: object, text: str) -> None:
    broken = data.make_dataset(Config("test-broken", item=item), data.DatasetUtility(1, 0, 1))
    with pytest.raises(data.DataError, match=text):
        next(iter(data.make_dataloader(Config("default", shuffle=False), broken)))


def test_a_batch_without_a_common_first_dimension_is_refused() -> None:
    with pytest.raises(
        data.DataError, match=r"a loader: the tensors have no common first dimension: a \(2,\), b \(3,\)"
    ):
        data.checked_batch({"a": torch.zeros(2), "b": torch.zeros(3)}, source="a loader")


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(UnknownName, match="'test-numbers'"):
        data.make_dataset("test-number", data.DatasetUtility(1, 0, 1))


def test_workers_share_the_items_of_a_dataset() -> None:
    parts = [data.make_dataset("test-numbers", data.DatasetUtility(1, rank, 3)) for rank in range(3)]
    numbers = sorted(int(part[index]["number"]) for part in parts for index in range(data.length(part, "a part")))
    assert numbers == list(range(20))


def test_a_tokenizer_without_padding_pads_with_the_end_of_a_text() -> None:
    tokenizer = Tokenizer()
    data.DatasetUtility(1, 0, 1, tokenizer)
    assert tokenizer.pad_token_id == 3


def test_a_tokenizer_that_cannot_pad_is_refused() -> None:
    tokenizer = Tokenizer()
    tokenizer.eos_token_id = None
    with pytest.raises(ValueError, match="set pad_token"):
        data.DatasetUtility(1, 0, 1, tokenizer)


def test_a_rank_beyond_the_workers_is_refused() -> None:
    with pytest.raises(ValueError, match="not 2 of 2"):
        data.DatasetUtility(1, 2, 2)


def test_shuffled_indices_depend_on_the_seed_alone() -> None:
    first = data.get_shuffle_indices(5, 50)
    torch.rand(3)
    assert data.get_shuffle_indices(5, 50) == first != data.get_shuffle_indices(6, 50)
    assert sorted(first) == list(range(50))
