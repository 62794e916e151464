"""The samplers of Determined, for trials that build torch data loaders of their own.

``determined.pytorch.DataLoader`` needs none of them: it shards, shuffles and resumes by itself.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch.utils.data import Sampler

__all__ = [
    "DistributedBatchSampler",
    "DistributedSampler",
    "RepeatBatchSampler",
    "RepeatSampler",
    "ReproducibleShuffleBatchSampler",
    "ReproducibleShuffleSampler",
    "SkipBatchSampler",
    "SkipSampler",
]


class _Source(Protocol):
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class RepeatSampler(Sampler[int]):
    """Yields another sampler's items again and again, without end. Its length is that of one pass.

    Args:
        sampler: the sampler to repeat.

    >>> import itertools
    >>> list(itertools.islice(RepeatSampler([1, 2]), 5))
    [1, 2, 1, 2, 1]
    """

    def __init__(self, sampler: _Source) -> None:
        self._sampler = sampler

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self._sampler


class DistributedSampler(Sampler[int]):
    """Yields each ``num_workers``-th item, beginning with number ``rank``.

    Args:
        sampler: the sampler to share.
        num_workers: number of workers that share it.
        rank: number of this worker, from 0.

    Raises:
        ValueError: ``rank`` is not below ``num_workers``.

    >>> list(DistributedSampler([10, 11, 12, 13, 14], num_workers=2, rank=1))
    [11, 13]
    """

    def __init__(self, sampler: _Source, num_workers: int, rank: int) -> None:
        if not 0 <= rank < num_workers:
            raise ValueError(f"rank must be at least 0 and less than num_workers ({num_workers}), not {rank}")
        self._sampler = sampler
        self._size = num_workers
        self._rank = rank

    def __len__(self) -> int:
        return len(range(self._rank, len(self._sampler), self._size))

    def __iter__(self) -> Iterator[Any]:
        for number, item in enumerate(self._sampler):
            if number % self._size == self._rank:
                yield item


class SkipSampler(Sampler[int]):
    """Skips the first items of another sampler, in its first pass only.

    Args:
        sampler: the sampler to read.
        skip: number of items to skip.

    >>> sampler = SkipSampler([1, 2, 3], skip=2)
    >>> list(sampler), list(sampler)
    ([3], [1, 2, 3])
    """

    def __init__(self, sampler: _Source, skip: int) -> None:
        self._sampler = sampler
        self._skip = skip

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        skip, self._skip = self._skip, 0
        for number, item in enumerate(self._sampler):
            if number >= skip:
                yield item


class ReproducibleShuffleSampler(Sampler[int]):
    """Yields another sampler's items in an order that depends only on the seed and the number of the pass.

    Args:
        sampler: the sampler to shuffle; it must be finite.
        seed: seed of the order.

    >>> one, other = (list(ReproducibleShuffleSampler(range(9), seed=3)) for _ in range(2))
    >>> one == other, sorted(one) == list(range(9))
    (True, True)
    """

    def __init__(self, sampler: _Source, seed: int) -> None:
        self._sampler = sampler
        self._generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        items = list(self._sampler)
        for index in torch.randperm(len(items), generator=self._generator).tolist():
            yield items[index]


class RepeatBatchSampler(RepeatSampler):
    """Repeats the batches of a batch sampler."""


class DistributedBatchSampler(DistributedSampler):
    """Yields one slot's share of the batches of a batch sampler."""


class SkipBatchSampler(SkipSampler):
    """Skips the first batches of a batch sampler, in its first pass only."""


class ReproducibleShuffleBatchSampler(ReproducibleShuffleSampler):
    """Shuffles whole batches; the items of each batch stay together."""
