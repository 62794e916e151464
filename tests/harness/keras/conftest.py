"""Keras on torch in one thread, and a training that can be paused after any batch."""

import os
from dataclasses import dataclass, field

import pytest

os.environ["KERAS_BACKEND"] = "torch"

EPOCHS, RECORDS, BATCH = 3, 90, 16
BATCHES = EPOCHS * -(-RECORDS // BATCH)


@pytest.fixture(autouse=True)
def one_thread():
    """Limits torch to one thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass
class Preemption:
    """Requests preemption at the given call."""

    after: int | None = None
    calls: int = field(default=0)

    def should_preempt(self):
        self.calls += 1
        return self.calls == self.after

    def close(self):
        pass


@pytest.fixture
def data():
    import numpy as np

    rng = np.random.default_rng(7)
    return rng.random((RECORDS, 8), dtype="float32"), rng.integers(0, 3, RECORDS)


@pytest.fixture
def make_model():
    def make(metrics=("accuracy",)):
        import keras

        model = keras.Sequential(
            [
                keras.Input((8,)),
                keras.layers.Dense(12, activation="relu"),
                keras.layers.Dropout(0.4),
                keras.layers.BatchNormalization(),
                keras.layers.Dense(3, activation="softmax"),
            ]
        )
        schedule = keras.optimizers.schedules.ExponentialDecay(1e-2, 10, 0.5)
        model.compile(keras.optimizers.Adam(schedule), "sparse_categorical_crossentropy", metrics=list(metrics))
        return model

    return make
