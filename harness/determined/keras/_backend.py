"""Imports Keras. Where nobody has chosen a backend and TensorFlow is not installed, the backend is torch."""

import importlib
import importlib.util
from typing import Any

from determined_launch import environment

BACKEND = "KERAS_BACKEND"


def load() -> Any:  # noqa: ANN401  # keras has no types
    """Returns the module ``keras``. Raises ModuleNotFoundError that says what to install."""
    if not environment.current().get(BACKEND) and importlib.util.find_spec("tensorflow") is None:
        environment.put({BACKEND: "torch"})
    try:
        return importlib.import_module("keras")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"determined.keras needs Keras 3 and a backend, but {error.name} is not installed: "
            "pip install 'detent-cluster[keras]', or select an environment.image that has it",
            name=error.name,
        ) from None


keras = load()
if int(keras.__version__.partition(".")[0]) < 3:
    raise ImportError(f"determined.keras needs Keras 3, not {keras.__version__}: pip install 'keras>=3'", name="keras")
