"""Conversion of reported metric values to plain values."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from determined import core
from determined.core._metric_values import plain, plain_value


class TensorflowTensor:
    """A stand-in for a TensorFlow tensor, of which only ``numpy()`` is used."""

    def numpy(self):
        return np.array([0.5])


@pytest.mark.parametrize(
    "value",
    [
        np.array(0.5),
        np.array([0.5]),
        np.array([[0.5]]),
        np.array([Decimal("0.5")], dtype=object),
        np.float64(0.5),
        np.float32(0.5),
        Decimal("0.5"),
        Fraction(1, 2),
        TensorflowTensor(),
    ],
    ids=["0-d", "1-d", "2-d", "array of decimals", "float64", "float32", "decimal", "fraction", "tensorflow"],
)
def test_a_value_with_one_number_becomes_a_float(value):
    number = plain_value(value)
    assert type(number) is float
    assert number == 0.5


@pytest.mark.torch
def test_a_tensor_with_one_element_becomes_a_number():
    torch = pytest.importorskip("torch")
    for tensor in (torch.tensor(0.5), torch.tensor([0.5]), torch.ones(1, 1, 1, requires_grad=True) / 2):
        assert plain_value(tensor) == 0.5
    assert plain_value(torch.tensor([3])) == 3
    assert plain_value(torch.tensor([[1.0, 2.0]])) == [[1.0, 2.0]]
    assert plain_value([torch.tensor(1.0), torch.tensor([2.0])]) == [1.0, 2.0]


def test_booleans_nan_and_larger_arrays_keep_their_form():
    assert plain_value(np.bool_(True)) is True
    assert plain_value(np.array([False])) is False
    assert plain_value(True) is True
    assert math.isnan(plain_value(np.array([np.nan])))
    assert plain_value(np.array([1, 2])) == [1, 2]
    assert plain_value(np.array([])) == []
    assert plain_value((np.int64(1), [np.array([2.0])])) == [1, [2.0]]
    assert plain({"group": {1: np.array([0.5])}}) == {"group": {"1": 0.5}}


def test_bytes_are_dropped_with_a_warning(caplog):
    assert plain({"raw": b"x", "loss": 1}) == {"loss": 1}
    assert "'raw' is not reported" in caplog.text


@pytest.mark.parametrize(
    "value",
    [1j, object(), np.array([1j]), [{1, 2}], {"inner": object()}],
    ids=["complex", "object", "array of complex", "list of sets", "nested object"],
)
def test_the_error_about_an_unsupported_value_names_its_metric(value):
    train = core.DummyTrainContext()
    with pytest.raises(TypeError, match="metric 'odd' holds a "):
        train.report_training_metrics(1, {"loss": 0.5, "odd": value})
    assert train.reports == []


def test_every_accepted_value_has_a_json_form():
    values = plain({"a": np.array([[1.5]]), "b": Decimal(2), "c": "text", "d": None, "e": np.arange(3)})
    assert json.loads(json.dumps(values)) == {"a": 1.5, "b": 2.0, "c": "text", "d": None, "e": [0, 1, 2]}
