"""The name of a task's folder: its parameters and values, shortened."""

import os.path
from collections.abc import Mapping

from determined_workflows.runner.params_file import Value

MAX_VALUE_LENGTH = 100


def task_name(choices: Mapping[str, Value]) -> str:
    """Returns the name of a point of the grid. A value that is an existing path is shortened to its last part.

    >>> task_name({"norm": "new", "warmup_steps": 100, "use-bias": True, "lr": 1e-05})
    'Norm_new-WaSteps_100-UsBias_T-Lr_1e-05'
    """
    return "-".join(f"{short_param(name)}_{short_value(value)}" for name, value in choices.items())


def short_param(name: str) -> str:
    """Returns a parameter's name in camel case, all words but the last cut to two letters.

    >>> short_param("label_smoothing_loss"), short_param("my_x")
    ('LaSmLoss', 'myX')
    """
    words = name.split("-" if "-" in name else "_")
    return "".join(word[:2].title() if len(word) > 2 else word for word in words[:-1]) + words[-1].title()


def short_value(value: Value) -> str:
    """Returns a value as a part of a file name.

    >>> short_value(12345678), short_value("a/b"), short_value(False)
    ('1.23457e+07', 'a_b', 'F')
    """
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, int | float):
        try:
            return f"{value:g}"
        except OverflowError:  # an integer above all floats
            return str(value)[-MAX_VALUE_LENGTH:]
    if not isinstance(value, str):
        value = str(value)
    if os.path.exists(value):
        return os.path.basename(value)
    return value.lstrip("/").replace("/", "_")[-MAX_VALUE_LENGTH:]
