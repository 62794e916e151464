"""Sources that determine the order of training data: samplers and loaders of users, created anew as in a new process."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import data as torch_data

from determined.pytorch import DataLoader
from determined.pytorch.samplers import RepeatSampler, ReproducibleShuffleBatchSampler, ReproducibleShuffleSampler

COUNT = 12
DATA = torch_data.TensorDataset(torch.arange(COUNT))


class Counting:
    """A sampler that shifts its items by the number of completed passes."""

    def __init__(self) -> None:
        self.passes = 0

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[int]:
        yield from ((index + self.passes) % COUNT for index in range(COUNT))
        self.passes += 1


class Stateful:
    """A sampler that shuffles with a seed of its own. Only its state can repeat its order."""

    first_seed = 0

    def __init__(self) -> None:
        self.seed = Stateful.first_seed

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[int]:
        yield from torch.randperm(COUNT, generator=torch.Generator().manual_seed(self.seed)).tolist()
        self.seed += 1

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed = state["seed"]


class StatefulLoader(Stateful):
    """A loader of another library, with a state."""

    def __len__(self) -> int:
        return COUNT // 3

    def __iter__(self) -> Iterator[list[torch.Tensor]]:
        order = list(super().__iter__())
        yield from ([torch.tensor(order[start : start + 3])] for start in range(0, COUNT, 3))


class Stream(torch_data.IterableDataset[Any]):
    """A data set that continues each pass where the previous one ended. The copy in a worker starts at the beginning."""

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
    """A loader of another library that counts its passes."""

    def __init__(self) -> None:
        self.passes = 0

    def __len__(self) -> int:
        return 4

    def __iter__(self) -> Iterator[list[torch.Tensor]]:
        self.passes += 1
        yield from ([torch.tensor([self.passes, number])] for number in range(4))


def seeded_generator() -> torch.Generator:
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
        DATA, 3, sampler=torch_data.RandomSampler(DATA, generator=seeded_generator()), num_workers=workers
    ),
    "batch sampler over one": lambda workers: DataLoader(
        DATA, batch_sampler=batched(torch_data.RandomSampler(DATA, generator=seeded_generator())), num_workers=workers
    ),
    "sampler with a counter": lambda workers: DataLoader(DATA, 3, sampler=Counting(), num_workers=workers),
    "sampler without an end": lambda workers: DataLoader(
        DATA, 3, sampler=RepeatSampler(range(COUNT)), num_workers=workers
    ),
}
PLAIN: dict[str, Callable[[int], Any]] = {
    "torch, generator=": lambda workers: torch_data.DataLoader(
        DATA, 3, shuffle=True, generator=seeded_generator(), num_workers=workers
    ),
    "torch, shuffle=True": lambda workers: torch_data.DataLoader(DATA, 3, shuffle=True, num_workers=workers),
    "torch, sampler with a counter": lambda workers: torch_data.DataLoader(
        DATA, 3, sampler=Counting(), num_workers=workers
    ),
    "torch, batch sampler": lambda workers: torch_data.DataLoader(
        DATA, batch_sampler=batched(torch_data.RandomSampler(DATA, generator=seeded_generator())), num_workers=workers
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
STATEFUL: dict[str, Callable[[int], Any]] = {
    "sampler with state_dict": lambda workers: DataLoader(DATA, 3, sampler=Stateful(), num_workers=workers),
    "batch sampler over one with state_dict": lambda workers: DataLoader(
        DATA, batch_sampler=batched(Stateful()), num_workers=workers
    ),
    "torch, sampler with state_dict": lambda workers: torch_data.DataLoader(
        DATA, batch_sampler=batched(Stateful()), num_workers=workers
    ),
    "a loader with state_dict": lambda _workers: StatefulLoader(),
}
"""Sources that a new process can continue only from their state."""
