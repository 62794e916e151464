"""Imports of scripts that were written for Determined."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from determined.common import util as common_util
from determined.common.util import (
    chunks,
    preserve_random_state,
    safe_load_yaml_with_exceptions,
    sizeof_fmt,
    strtobool,
    wait_for,
    yaml_safe_dump,
    yaml_safe_load,
)
from determined.tensorboard import MetricWriter
from determined.util import (
    calculate_batch_sizes,
    filter_duplicates,
    force_create_symlink,
    get_member_func,
    has_param,
    humanize_float,
    is_numerical_scalar,
    is_overridden,
    json_encode,
    merge_dicts,
)

WITHOUT_TENSORBOARD = """
import sys
sys.modules["tensorboard"] = None
from determined.tensorboard.metric_writers.pytorch import TorchWriter
TorchWriter()
"""


@pytest.mark.torch
def test_torch_writer_writes_to_the_folder_of_the_trials_event_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from determined.tensorboard.metric_writers import event_folder
    from determined.tensorboard.metric_writers.pytorch import TorchWriter

    monkeypatch.chdir(tmp_path)
    assert event_folder().resolve() == tmp_path / "tensorboard"
    monkeypatch.setenv("DET_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("DET_ALLOCATION_ID", "1.a.1")
    writer = TorchWriter()
    assert isinstance(writer, MetricWriter)
    writer.add_scalar("loss", 0.5, 3)
    writer.writer.add_scalar("loss", 0.25, 4)
    writer.flush()
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert [(scalar.step, scalar.value) for scalar in events.Scalars("loss")] == [(3, 0.5), (4, 0.25)]
    writer.reset()


@pytest.mark.torch
def test_torch_writer_without_tensorboard_names_the_install_command():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TENSORBOARD], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "ModuleNotFoundError: TorchWriter needs torch and tensorboard, but tensorboard is not installed"
    )
    assert "pip install torch tensorboard" in last


def test_functions_of_determined_util_behave_as_documented(tmp_path: Path):
    assert calculate_batch_sizes({"global_batch_size": 65}, 2, "T") == (32, 64)
    with pytest.raises(ValueError, match="T needs the hyperparameter global_batch_size"):
        calculate_batch_sizes({}, 2, "T")
    with pytest.raises(ValueError, match="smaller than the number of slots"):
        calculate_batch_sizes({"global_batch_size": 1}, 2, "T")
    assert filter_duplicates([3, 1, 3, 2, 1]) == {1, 3}
    for target in ("a", "b"):
        force_create_symlink(target, str(tmp_path / "newest"))
    assert (tmp_path / "newest").readlink() == Path("b")
    assert get_member_func([1], "pop")() == 1
    assert get_member_func([], "nothing") is None
    assert [has_param(lambda a, b: 0, *arguments) for arguments in (("b",), ("c",), ("c", 1), ("c", 2))] == [1, 0, 1, 0]
    assert [humanize_float(value) for value in (1234.5, 0.123456, 0)] == [1234.0, 0.123, 0]
    assert [is_numerical_scalar(value) for value in (1, np.float32(2), np.zeros(1), np.zeros(2), "1", True)] == [
        *(True, True, True, False, False, False)
    ]

    class Own(dict):
        def get(self, *_):
            return None

    assert (is_overridden(Own().get, dict), is_overridden(Own().keys, dict)) == (True, False)
    values = {"a": np.float32(0.5), "b": np.arange(2), "c": Path("x"), "d": {2, 1}}
    assert json.loads(json_encode(values)) == {"a": 0.5, "b": [0, 1], "c": "x", "d": [1, 2]}
    with pytest.raises(TypeError, match="object is not JSON"):
        json_encode({"a": object()})
    base = {"a": {"x": 1}, "b": 1}
    assert merge_dicts(base, {"a": {"y": 2}, "b": {"z": 3}}) == {"a": {"x": 1, "y": 2}, "b": {"z": 3}}
    assert base == {"a": {"x": 1}, "b": 1}


def test_functions_of_determined_common_util_behave_as_documented(tmp_path: Path):
    assert ["".join(part) for part in chunks("abcde", 2)] == ["ab", "cd", "e"]
    assert [sizeof_fmt(size) for size in (10, 2048, 3 << 30)] == ["10.0B", "2.0KB", "3.0GB"]
    assert (strtobool("TRUE"), strtobool("n")) == (True, False)
    with pytest.raises(ValueError, match="invalid truth value: 'maybe'"):
        strtobool("maybe")
    answers = iter([(False, 0), (True, 7)])
    assert wait_for(lambda: next(answers), interval=0) == 7
    with pytest.raises(TimeoutError):
        wait_for(lambda: (False, 0), timeout=-1)
    assert yaml_safe_load(yaml_safe_dump({"b": [1], "a": None})) == {"b": [1], "a": None}
    (tmp_path / "bad.yaml").write_text("a: [")
    with (tmp_path / "bad.yaml").open() as file, pytest.raises(ValueError, match=r"bad\.yaml is no valid YAML"):
        safe_load_yaml_with_exceptions(file)

    @preserve_random_state
    def draw():
        return random.random(), np.random.random()

    assert draw() == draw()
    assert not hasattr(common_util, "__path__")


@pytest.mark.torch
def test_determined_keras_callbacks_are_callbacks_of_keras():
    keras = pytest.importorskip("keras")
    from determined.keras import callbacks

    assert issubclass(callbacks.Callback, keras.callbacks.Callback)
    assert callbacks.Callback().get_state() is None
    callbacks.Callback().load_state(None)
    assert callbacks.EarlyStopping is keras.callbacks.EarlyStopping
    assert callbacks.ReduceLROnPlateau is keras.callbacks.ReduceLROnPlateau
    assert callbacks.TensorBoard.__mro__[1] is keras.callbacks.TensorBoard
