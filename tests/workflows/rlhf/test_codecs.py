"""The eight codecs of NamedArray: what comes back, which fields are compressed, and what cannot be sent."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.workflows.rlhf.nested_arrays import assert_same, nested

from determined_workflows.rlhf.task.codecs import CODES, IS_PACKED, METHODS
from determined_workflows.rlhf.task.frames import FrameError
from determined_workflows.rlhf.task.named_array import NamedArray, dumps, from_dict, loads

PICKLED = [method for method in METHODS if method not in IS_PACKED]
TORCH_TYPES = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.complex64)


@pytest.mark.parametrize("method", METHODS)
@given(values=nested(), step=st.integers())
def test_every_codec_returns_fields_types_and_metadata(method: str, values: dict[str, Any], step: int) -> None:
    frames = [bytes(frame) for frame in dumps(from_dict(values, _step=step), method)]
    assert frames[0][:4] == CODES[method]
    found = loads(frames, allow_pickle=method in PICKLED)
    assert_same(found.to_dict(), values)
    assert dict(found.metadata) == {"_step": step}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", TORCH_TYPES, ids=str)
def test_every_codec_keeps_the_type_of_a_tensor(method: str, dtype: torch.dtype) -> None:
    tensors = {"a": torch.arange(6).reshape(2, 3).to(dtype), "scalar": torch.tensor(1, dtype=dtype), "none": None}
    tensors["turned"], tensors["empty"] = tensors["a"].T, torch.empty(0, 3, dtype=dtype)
    found = loads(dumps(from_dict(tensors), method), allow_pickle=True)
    for name in ("a", "scalar", "turned", "empty"):
        assert found[name].dtype is dtype
        assert torch.equal(found[name], tensors[name])


def test_codes_are_those_of_2023() -> None:
    assert [(code, method) for method, code in CODES.items()] == [
        (b"0001", "pickle_dict"),
        (b"0002", "pickle"),
        (b"0003", "raw_bytes"),
        (b"0004", "raw_compress"),
        (b"0005", "compress_pickle"),
        (b"0006", "pickle_compress"),
        (b"0007", "obs_compress"),
        (b"0008", "compress_except_policy_state"),
    ]


def test_none_is_sent_as_none() -> None:
    assert [loads(dumps(None, method), allow_pickle=True) for method in METHODS] == [None] * 8


def test_numbers_and_texts_keep_their_types() -> None:
    x = NamedArray(a=1, b=2.5, c="text", d=True, e=np.float32(1.5), f=np.int64(3))
    found = loads(dumps(x))
    assert found.to_dict() == x.to_dict()
    assert [type(leaf) for leaf in found] == [int, float, str, bool, np.float32, np.int64]


def test_raw_bytes_sends_the_memory_of_the_array_itself() -> None:
    array, tensor = np.zeros(1000), torch.zeros(1000)
    frames = dumps(NamedArray(a=array, b=tensor))
    assert np.shares_memory(np.frombuffer(frames[1], np.uint8), array)
    assert np.shares_memory(np.frombuffer(frames[2], np.uint8), tensor.numpy())


def test_loaded_arrays_are_writable_and_use_writable_frames() -> None:
    first, *rest = dumps(NamedArray(a=np.zeros(1000)))
    frame = bytearray(rest[0])
    in_place, copied = loads([first, frame]), loads([first, bytes(frame)])
    in_place.a[0] = copied.a[1] = 1.0
    assert np.frombuffer(frame)[0] == 1.0


def test_arrays_of_an_odd_address_are_copied_to_an_aligned_one() -> None:
    first, data = dumps(NamedArray(a=torch.arange(10)))
    odd = bytearray(b"x" + bytes(data))
    found = loads([first, memoryview(odd)[1:]])
    assert found.a.tolist() == list(range(10))
    assert found.a.data_ptr() % 8 == 0


@pytest.mark.parametrize(
    ("method", "compressed"),
    [
        ("raw_bytes", []),
        ("raw_compress", ["a", "obs.x", "policy_state.h"]),
        ("obs_compress", ["obs.x"]),
        ("compress_except_policy_state", ["a", "obs.x"]),
    ],
)
def test_a_codec_compresses_its_fields(method: str, compressed: list[str]) -> None:
    x = from_dict({"a": np.zeros(999), "obs": {"x": np.zeros(999)}, "policy_state": {"h": np.zeros(999)}})
    sizes = [memoryview(frame).nbytes for frame in dumps(x, method)[1:]]
    names = ["a", "obs.x", "policy_state.h"]
    assert [name for name, size in zip(names, sizes, strict=True) if size < 999] == compressed


def test_an_unknown_codec_is_said_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'raw_bytes'"):
        dumps(NamedArray(a=np.zeros(1)), "raw_byte")


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (np.array([object()]), "field 'a' is ndarray of object"),
        ({1, 2}, "field 'a' is set of object"),
        (np.zeros(1, dtype=[("x", int)]), "which cannot be sent"),
        (torch.eye(2).to_sparse(), "sparse"),
    ],
)
def test_a_field_that_is_no_array_is_named(leaf: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        dumps(NamedArray(a=leaf))


def test_metadata_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(TypeError, match="metadata that JSON cannot hold"):
        dumps(from_dict({"a": np.zeros(1)}, what=object()))


def test_a_dictionary_is_not_sent_as_it_is() -> None:
    with pytest.raises(TypeError, match="make one by from_dict"):
        dumps({"a": np.zeros(1)})  # type: ignore[arg-type]


@pytest.mark.parametrize("method", PICKLED)
def test_pickled_frames_are_refused_unless_allowed(method: str) -> None:
    frames = dumps(NamedArray(a=np.zeros(1)), method)
    with pytest.raises(FrameError, match=f"{method} are pickled"):
        loads(frames)


@pytest.mark.parametrize("method", PICKLED)
def test_damaged_pickled_frames_are_frame_errors(method: str) -> None:
    code, text, *rest = dumps(NamedArray(a=np.arange(100)), method)
    for frames in ([code], [code, text[:-5], *rest], [code, b"", *rest]):
        with pytest.raises(FrameError):
            loads(frames, allow_pickle=True)


def test_a_pickle_in_a_safe_frame_is_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    text = pickle.dumps(Hostile())
    for code in (b"0003", b"0004", b"0007", b"0008", b"0009", b"\x80\x05"):
        with pytest.raises(FrameError):
            loads([code + text, text], allow_pickle=True)
    for method in PICKLED:
        with pytest.raises(FrameError, match="pickled"):
            loads([CODES[method], text])
    assert not (tmp_path / "ran").exists()


def test_metadata_with_keys_that_are_no_texts_are_refused() -> None:
    with pytest.raises(TypeError, match="keys that are no texts"):
        dumps(from_dict({"a": np.zeros(1)}, what=[{1: 2}]))
