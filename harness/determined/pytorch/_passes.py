"""The passes over a sampler or a loader, by number, so that a position in the data is a number for every source.

A source with ``set_epoch`` is told the number of the pass. One with ``state_dict`` gets the state that it had at the
beginning of the pass, from the checkpoint. Any other one may change with each pass, as a sampler with a generator does:
the passes that this process has not taken are taken again, without loading data.
"""

import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import torch
from torch.utils import data as torch_data

logger = logging.getLogger(__name__)

_END = object()
Streams = Callable[[int], AbstractContextManager[None]]
"""Sets the random streams of the process for the pass with a number, inside a block."""


PassStates = dict[int, list[Any]]
"""The states of sources at the beginning of passes, by the number of the pass."""


class SourceStates:
    """The states of sources with ``state_dict`` and ``load_state_dict``, at the beginning of the newest passes.

    Args:
        parts: a sampler, or a loader and the samplers in it.
    """

    def __init__(self, parts: list[Any]) -> None:
        found = [each for each in parts if has_state(each)]
        # The state of a loader contains those of its samplers.
        self._sources = found[:1] if found and found[0] is parts[0] else found
        self._known: PassStates = {}
        self._following: int | None = None

    def begin(self, number: int) -> None:
        """Reads the states before a pass is taken."""
        if self._sources:
            self._known, self._following = {number: self._read()}, number + 1

    def restore(self, number: int) -> bool:
        """Loads the states of the beginning of a pass. Returns False if they are not known."""
        states = self._known.get(number)
        if states is None or len(states) != len(self._sources):
            return False
        for source, state in zip(self._sources, states, strict=True):
            source.load_state_dict(copy.deepcopy(state))
        return True

    def values(self) -> PassStates:
        """Returns the states for a checkpoint: those of the newest pass and, as it may have ended, of the next one."""
        if self._following is None:
            return self._known
        return {**self._known, self._following: self._read()}

    def load(self, values: PassStates) -> None:
        """Takes the states of a checkpoint; :meth:`restore` applies them."""
        self._known, self._following = values, None

    def _read(self) -> list[Any]:
        return [copy.deepcopy(source.state_dict()) for source in self._sources]


def has_state(source: object) -> bool:
    """Returns True if the state of a source can be saved and restored."""
    return all(callable(getattr(source, name, None)) for name in ("state_dict", "load_state_dict"))


class SamplerPasses:
    """The items of a sampler in each pass.

    Args:
        source: the sampler, or batch sampler.
        length: the number of its items in a pass.
        streams: see ``Streams``.
    """

    def __init__(self, source: Any, length: int, streams: Streams) -> None:  # noqa: ANN401  # a sampler of the user
        self._source = source
        self._length = length
        self._streams = streams
        self._taken = 0
        self._newest: tuple[int, list[Any]] | None = None
        self.states = SourceStates([] if hasattr(source, "set_epoch") else parts_of(source))

    def items(self, number: int) -> list[Any]:
        """Returns the items of a pass. Passes are asked for in ascending order; the newest may be asked for again."""
        if hasattr(self._source, "set_epoch"):
            self._source.set_epoch(number)
            with self._streams(number):
                return self._read()
        if self._newest is not None and self._newest[0] == number:
            return self._newest[1]
        if self.states.restore(number):
            self._taken = number
        elif number < self._taken:
            logger.warning(
                "%s cannot go back to pass %d: the order of its items differs from that of an uninterrupted run",
                type(self._source).__name__,
                number,
            )
            self._taken = number
        items: list[Any] = []
        while self._taken <= number:
            self.states.begin(self._taken)
            with self._streams(self._taken):
                items = self._read()
            self._taken += 1
        self._newest = (number, items)
        return items

    def _read(self) -> list[Any]:
        source = iter(self._source)
        items = list(islice(source, self._length))
        # What follows the last item belongs to the pass: a sampler may count there. Some repeat themselves without end.
        next(source, _END)
        return items


class LoaderPasses:
    """Brings a loader of the user to a pass: afterwards its next iterator yields the batches of that pass.

    Args:
        loader: a torch data loader, or any other iterable.
        streams: see ``Streams``.
    """

    def __init__(self, loader: Any, streams: Streams) -> None:  # noqa: ANN401  # a loader of the user
        self._loader = loader
        self._streams = streams
        self._taken = 0
        self._first = [(each, each.get_state()) for each in _generators(loader)]
        parts = parts_of(loader)
        self._epoch_setters = [each for each in parts if hasattr(each, "set_epoch")]
        self.states = SourceStates([] if self._epoch_setters else parts)

    def go_to(self, number: int) -> None:
        """Takes the passes before ``number`` that this process has not taken. The caller takes that one."""
        for each in self._epoch_setters:
            each.set_epoch(number)
        if not self._epoch_setters:
            if self.states.restore(number):
                self._taken = number
            elif number < self._taken:
                for generator, state in self._first:
                    generator.set_state(state)
                self._taken = 0
            if self._taken < number and self._reads_data():
                logger.info(
                    "%s is read %d times to reach its position: it has neither a sampler nor set_epoch",
                    type(self._loader).__name__,
                    number - self._taken,
                )
            while self._taken < number:
                with self._streams(self._taken):
                    # One more than its length ends the pass; what repeats itself without end is left there.
                    for _ in islice(self._indexes(), len(self._loader) + 1):
                        pass
                self._taken += 1
            self.states.begin(number)
        self._taken = number + 1

    def _reads_data(self) -> bool:
        """Returns True if a pass can only be taken by reading its data."""
        loader = self._loader
        if isinstance(loader, (list, tuple)):
            return False
        # Workers begin each pass with a new copy of the dataset.
        return not isinstance(loader, torch_data.DataLoader) or (is_iterable(loader) and loader.num_workers == 0)

    def _indexes(self) -> Iterator[Any]:
        """Passes over the indexes, with the draws that torch's loader makes; over the batches if there are none."""
        loader = self._loader
        if isinstance(loader, (list, tuple)):
            return iter(())
        if self._reads_data():
            return iter(loader)
        if loader.batch_sampler is None or is_iterable(loader):
            sampler = () if is_iterable(loader) else loader.sampler
            indexes = torch_data.DataLoader(_Index(), batch_size=None, sampler=sampler, generator=loader.generator)
        else:
            indexes = torch_data.DataLoader(
                _Index(), batch_sampler=loader.batch_sampler, generator=loader.generator, collate_fn=len
            )
        return iter(indexes)


def is_iterable(loader: "torch_data.DataLoader[Any]") -> bool:
    return isinstance(loader.dataset, torch_data.IterableDataset)


class _Index(torch_data.Dataset[Any]):
    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401  # whatever the sampler yields
        return index


def parts_of(loader: object) -> list[Any]:
    """Returns the loader and the samplers in it, each once."""
    parts: list[Any] = []
    waiting: list[Any] = [loader]
    while waiting:
        part = waiting.pop()
        if part is None or any(part is each for each in parts):
            continue
        parts.append(part)
        waiting += [getattr(part, name, None) for name in ("sampler", "batch_sampler")]
    return parts


def _generators(loader: object) -> list[torch.Generator]:
    found = (getattr(part, "generator", None) for part in parts_of(loader))
    return [each for each in found if isinstance(each, torch.Generator)]
