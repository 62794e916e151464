"""The order of data after pauses and failures, for every source and number of workers: training is equal bit by bit."""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.support import data_sources, rank_processes
from tests.support.attempts import Attempt, attempt, chain, joined
from tests.support.compiler import python_path
from tests.support.data_sources import OURS, PLAIN, STATEFUL
from torch import nn

from determined import core, pytorch

pytestmark = [pytest.mark.torch, pytest.mark.budget(20, "trains eighteen sources with pauses")]

TWO_SLOTS = Path(rank_processes.__file__).with_name("order_of_two_slots.py")
ON_TWO_SLOTS = [*OURS, "sampler with state_dict"]
BATCHES, EPOCHS = 4, 4
SOURCES = {**OURS, **PLAIN, **STATEFUL}
PAUSES = {"epoch 0": [2], "epoch 0, its end": [BATCHES], "epoch 2": [2 * BATCHES + 2], "both": [1, 6]}
FIT = {
    "max_length": pytorch.Epoch(EPOCHS),
    "reporting_period": pytorch.Batch(1),
    "checkpoint_policy": "none",
}


class OrderTrial(pytorch.PyTorchTrial):
    """A trial whose weights depend on the order of the records, which it reports."""

    source: str
    workers: int

    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        self.context = context
        if self.source not in OURS:
            context.experimental.disable_dataset_reproducibility_checks()
        self.model = context.wrap_model(nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.2), nn.Linear(4, 1)))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), lr=0.05))

    def build_training_data_loader(self) -> Any:
        return SOURCES[self.source](self.workers)

    def build_validation_data_loader(self) -> Any:
        return pytorch.DataLoader(data_sources.DATA, batch_size=6)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        records = batch[0].float().reshape(-1, 1)
        loss = (self.model(records / 12) - records.sin()).pow(2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss, "records": sum(int(value) * 100**place for place, value in enumerate(batch[0]))}

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        return {"validation_loss": self.model(batch[0].float().reshape(-1, 1)).mean()}


def run_of(
    source: str, workers: int, folder: Path, distributed: core.DistributedContext | None = None
) -> Callable[..., Attempt]:
    """Returns a function that runs one attempt with a source of order. An attempt saves after the first batch of
    epoch 2."""
    in_epoch = BATCHES // (distributed.size if distributed else 1)
    fit = {**FIT, "checkpoint_period": pytorch.Batch(2 * in_epoch + 1)}
    kind = type("OrderTrial", (OrderTrial,), {"source": source, "workers": workers})

    def run(latest: str | None = None, **options: Any) -> Attempt:
        data_sources.Stateful.first_seed = 3 if latest is None else 100
        return attempt(kind, folder, fit=fit, latest=latest, distributed=distributed, **options)

    return run


def is_equal(straight: Attempt, attempts: list[Attempt], from_step: int = 0) -> bool:
    """Compares weights, optimizers and all reports after ``from_step``."""
    expected = {key: value for key, value in joined([straight]).items() if key[1] > from_step}
    last = attempts[-1]
    return (last.weights, last.optimizers, joined(attempts)) == (straight.weights, straight.optimizers, expected)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.long)])
def test_every_source_trains_the_same_after_pauses_and_failures(tmp_path: Path, workers: int) -> None:
    """Prints a table: each source, paused at each moment, and killed in epoch 2 after a checkpoint."""
    table: dict[str, dict[str, bool]] = {}
    for source in SOURCES:
        run = run_of(source, workers, tmp_path)
        straight = run()
        row = {name: is_equal(straight, chain(run, moments)) for name, moments in PAUSES.items()}
        step, uuid = straight.stored[0]
        assert step == 2 * BATCHES + 1
        row["killed in epoch 2"] = is_equal(straight, [run(latest=uuid)], step)
        table[source] = row
    print(f"\n{'source, ' + str(workers) + ' workers':32}", *next(iter(table.values())), sep="  ")
    for source, row in table.items():
        print(f"{source:32}", *(f"{'equal' if row[name] else 'DIFFERS':{len(name)}}" for name in row), sep="  ")
    differing = {source: row for source, row in table.items() if not all(row.values())}
    assert not differing


@pytest.mark.parametrize("sources", [ON_TWO_SLOTS[-2:], pytest.param(ON_TWO_SLOTS, marks=pytest.mark.long)])
def test_sources_train_the_same_on_two_slots(tmp_path: Path, sources: list[str]) -> None:
    words = [str(TWO_SLOTS), str(tmp_path / "checkpoints"), *sources]
    modules = os.pathsep.join([python_path(), str(TWO_SLOTS.parents[2])])
    ranks = rank_processes.by_hand(2, words, folder=tmp_path, PYTHONPATH=modules)
    try:
        outputs = [rank_processes.finish(rank) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()  # a rank may wait for one that has failed
            rank.communicate()
    for output in outputs:
        results = json.loads(next(line[3:] for line in output.splitlines() if line.startswith("OUT")))
        assert results == dict.fromkeys(sources, [True] * 4)


def test_the_reports_of_an_epoch_hold_every_record_once(tmp_path: Path) -> None:
    straight = run_of("shuffle=True", 0, tmp_path)()
    records: list[int] = []
    for group, step in joined([straight]):
        if group == "training" and step <= BATCHES:
            packed = int(joined([straight])[group, step]["records"])
            records += [packed // 100**place % 100 for place in range(3)]
    assert sorted(records) == list(range(12))


def test_is_equal_notices_another_order(tmp_path: Path) -> None:
    run = functools.partial(run_of("shuffle=True", 0, tmp_path))
    assert not is_equal(run(), [run(seed=6)])
