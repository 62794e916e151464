"""Trains the digits with Keras, with a gate before each batch, and prints the hash of the final weights."""

import hashlib

import keras
from gates import gate
from keras_def import DigitsTrial


class Gated(keras.callbacks.Callback):
    def __init__(self, context):
        super().__init__()
        self.core = context.get_core_context()
        self.last = context.get_experiment_config()["searcher"]["max_length"]["batches"]

    def on_train_batch_begin(self, batch, logs=None):
        gate(f"train-{int(self.model.optimizer.iterations)}", self.core)

    def on_train_end(self, logs=None):
        if int(self.model.optimizer.iterations) < self.last:
            return  # preempted
        values = [keras.ops.convert_to_numpy(weight).tobytes() for weight in self.model.weights]
        print(f"final parameters sha256: {hashlib.sha256(b''.join(values)).hexdigest()}", flush=True)


class Trial(DigitsTrial):
    def keras_callbacks(self):
        return [Gated(self.context)]
