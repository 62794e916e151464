"""Lets a test hold a trial at an exact moment, without a draw from any random stream.

A file ``NAME`` in the folder ``GATES`` closes a gate. A trial that reaches it creates ``NAME.here`` and waits until the
file is removed or, if it contains ``preempted``, until the trial is preempted.
"""

import os
import time
from pathlib import Path


def gate(name, core_context=None):
    """Waits if a test has closed the gate."""
    folder = os.environ.get("GATES")
    if not folder or not os.path.exists(os.path.join(folder, name)):
        return
    closed = Path(folder, name)
    # Of several ranks only the chief asks; it removes the file for the others.
    until_preempted = closed.read_text() == "preempted" and core_context.distributed.rank == 0
    Path(folder, f"{name}.here").touch()
    while closed.exists() and not (until_preempted and core_context.preempt.should_preempt(auto_ack=False)):
        time.sleep(0.005)
    closed.unlink(missing_ok=True)


def gated(trial_class):
    """Returns the trial class with gates ``init``, ``train-N`` before each batch, and ``validate-STEPS-N``."""

    class Gated(trial_class):
        def __init__(self, context):
            gate("init")
            super().__init__(context)
            self.context = context

        def train_batch(self, batch, epoch_idx, batch_idx):
            gate(f"train-{batch_idx}", self.context._core)  # noqa: SLF001  # trial contexts have no public one
            return super().train_batch(batch, epoch_idx, batch_idx)

        def evaluate_batch(self, batch, batch_idx):
            steps = self.context.current_train_batch() + 1
            gate(f"validate-{steps}-{batch_idx}", self.context._core)  # noqa: SLF001  # as above
            return super().evaluate_batch(batch, batch_idx)

    return Gated
