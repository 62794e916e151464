"""Says what to do when the model of the example is not there yet: the Hub has none of its name."""

import os

BASE = "models/base"


def check(path):
    """Raises FileNotFoundError if the model is that of ``make_model.py``, which has not run."""
    if path == BASE and not os.path.isdir(path):
        raise FileNotFoundError(f"there is no {BASE}: python3 make_model.py writes it")
