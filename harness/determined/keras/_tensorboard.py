"""``TensorBoard``: Keras's callback for event files, in the folder of the trial."""

import importlib.util
from pathlib import Path
from typing import Any

from determined.keras._backend import keras

FOLDER = "tensorboard"


class TensorBoard(keras.callbacks.TensorBoard):  # type: ignore[misc]  # keras has no types
    """Keras's ``TensorBoard`` callback, which writes its event files where ``get_tensorboard_path()`` is.

    The folder is removed with the run folder when the trial has ended; metrics are on the web page without it. Keras
    writes event files with TensorFlow, whichever backend trains.

    Args:
        log_dir: folder for event files, by default ``tensorboard`` in the working directory.
        **options: those of ``keras.callbacks.TensorBoard``, for example ``update_freq``.

    Raises:
        ModuleNotFoundError: TensorFlow is not installed.

    >>> model.fit(x, y, callbacks=[callback, TensorBoard(update_freq="epoch")])  # doctest: +SKIP
    """

    def __init__(self, log_dir: str | None = None, **options: Any) -> None:  # noqa: ANN401  # Keras defines them
        if importlib.util.find_spec("tensorflow") is None:
            raise ModuleNotFoundError(
                "determined.keras.TensorBoard needs TensorFlow, with which Keras writes event files: pip install "
                "tensorflow, or leave the callback out; metrics are on the web page without it",
                name="tensorflow",
            )
        super().__init__(log_dir=log_dir or str(Path(FOLDER).resolve()), **options)
