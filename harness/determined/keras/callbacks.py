"""Callbacks of Keras under the names that trial classes of Determined import."""

from typing import Any

from determined.keras._backend import keras
from determined.keras._tensorboard import TensorBoard

__all__ = ["Callback", "EarlyStopping", "ReduceLROnPlateau", "TensorBoard"]

EarlyStopping = keras.callbacks.EarlyStopping
ReduceLROnPlateau = keras.callbacks.ReduceLROnPlateau


class Callback(keras.callbacks.Callback):  # type: ignore[misc]  # keras has no types
    """A callback of Keras. Those of Determined may keep a state; here each attempt begins with a new object.

    Example:
        >>> class Quiet(Callback):
        ...     def on_epoch_end(self, epoch, logs=None):
        ...         pass
    """

    def get_state(self) -> Any:  # noqa: ANN401  # only the callback knows it
        """Returns the state to save. It is not called: a pause restores the model and the position of the training."""

    def load_state(self, state: Any) -> None:  # noqa: ANN401  # as get_state
        """Takes over a saved state. It is not called.

        Args:
            state: what ``get_state`` returned.
        """
