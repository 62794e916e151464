"""The warning at the start of training about an order that a resumed process cannot repeat."""

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.support.data_sources import COUNT, DATA, OURS, PLAIN, STATEFUL, OwnLoader, Stream, batched
from torch.utils import data as torch_data

from determined.pytorch import DataLoader
from determined.pytorch._repeatable import warn_of_unrepeatable_order

pytestmark = pytest.mark.torch

READ_AGAIN = {"torch, iterable dataset", "a loader with a counter"}
CLOCK = itertools.count()


class ByClock:
    """A sampler whose order depends on a global counter, as one that reads the time."""

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[int]:
        start = next(CLOCK)
        yield from ((index + start) % COUNT for index in range(COUNT))


class Uncopyable(ByClock):
    def __deepcopy__(self, memo: object) -> None:
        raise TypeError("holds a socket")


def lines(caplog: pytest.LogCaptureFixture, loader: Any, *, is_chief: bool = True) -> list[tuple[str, str]]:
    caplog.set_level(logging.INFO)
    caplog.clear()
    warn_of_unrepeatable_order(loader, is_chief=is_chief)
    return [(record.levelname, record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(DATA, 3, sampler=ByClock()),
        DataLoader(DATA, batch_sampler=batched(ByClock())),
        torch_data.DataLoader(DATA, 3, sampler=ByClock()),
    ],
)
def test_a_sampler_whose_order_changes_is_named_in_one_warning(caplog: pytest.LogCaptureFixture, loader: Any) -> None:
    ((level, text),) = lines(caplog, loader)
    assert level == "WARNING"
    assert text.startswith("ByClock yields another order each time")
    assert "state_dict and load_state_dict" in text


@pytest.mark.parametrize(("loader", "name"), [(OwnLoader(), "OwnLoader"), (torch_data.DataLoader(Stream()), "Stream")])
def test_data_that_is_read_again_from_its_beginning_is_named_in_one_line(
    caplog: pytest.LogCaptureFixture, loader: Any, name: str
) -> None:
    ((level, text),) = lines(caplog, loader)
    assert level == "INFO"
    assert text.startswith(f"after a pause or a failure {name} is read again from its beginning")


def test_sources_that_repeat_themselves_are_not_named(caplog: pytest.LogCaptureFixture) -> None:
    for name, make in {**OURS, **PLAIN, **STATEFUL}.items():
        if name not in READ_AGAIN:
            assert lines(caplog, make(0)) == [], name
    assert lines(caplog, [[torch.zeros(1)]]) == []


def test_a_sampler_that_cannot_be_copied_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, DataLoader(DATA, 3, sampler=Uncopyable())) == []


def test_only_the_chief_names_a_source(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, DataLoader(DATA, 3, sampler=ByClock()), is_chief=False) == []
    assert lines(caplog, OwnLoader(), is_chief=False) == []


def test_the_check_of_the_order_changes_neither_order_nor_random_numbers(caplog: pytest.LogCaptureFixture) -> None:
    for name, make in OURS.items():
        checked, untouched = make(0), make(0)
        torch.manual_seed(1)
        expected = torch.rand(1)
        torch.manual_seed(1)
        lines(caplog, checked)
        assert torch.equal(torch.rand(1), expected)
        assert [batch[0].tolist() for batch in checked] == [batch[0].tolist() for batch in untouched], name
