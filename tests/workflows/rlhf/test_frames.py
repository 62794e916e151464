"""Hostile frames: refused with one kind of error, nothing executed, and memory bounded by the bytes received."""

import json
import random
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from determined_workflows.rlhf.task.frames import MAX_ARRAYS, MAX_HEADER_BYTES, FrameError
from determined_workflows.rlhf.task.named_array import NamedArray, dumps, from_dict, loads

SMALL = 256 << 10
"""Bytes that Python needs for the work itself."""


@contextmanager
def bounded_memory(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def header(node: Any, code: bytes = b"0003") -> bytes:
    return code + json.dumps(node).encode()


def one(*leaf: Any) -> Any:
    return {"fields": {"a": list(leaf)}, "metadata": {}}


def deep(levels: int) -> Any:
    node: Any = None
    for _ in range(levels):
        node = {"fields": {"a": node}, "metadata": {}}
    return node


DATA = bytes(8)
HOSTILE: dict[str, list[Any]] = {
    "nothing": [],
    "an empty frame": [b""],
    "an unknown codec": [b"9999{}"],
    "no JSON": [b"0003{"],
    "a number": [b"00031"],
    "an array at the top": [header(["numpy", "<f8", [1], False]), DATA],
    "a huge shape": [header(one("numpy", "<f8", [1 << 40, 1 << 40], False)), DATA],
    "a huge shape with a zero": [header(one("numpy", "<f8", [0, 1 << 62, 1 << 62], False)), b""],
    "a negative shape": [header(one("numpy", "<f8", [-1], False)), DATA],
    "two negative sizes": [header(one("numpy", "<f8", [-1, -1], False)), DATA],
    "a boolean size": [header(one("numpy", "<f8", [True], False)), DATA],
    "a fraction of a size": [header(one("numpy", "<f8", [1.0], False)), DATA],
    "too many dimensions": [header(one("numpy", "<f8", [1] * 100, False)), DATA],
    "objects": [header(one("numpy", "|O", [1], False)), DATA],
    "void": [header(one("numpy", "|V8", [1], False)), DATA],
    "a list of types": [header(one("numpy", "<f8,<O", [1], False)), DATA],
    "texts of no length": [header(one("numpy", "|S0", [8], False)), DATA],
    "a type of gigabytes": [header(one("numpy", "<U999999999", [1], False)), DATA],
    "a type that is no text": [header(one("numpy", 8, [1], False)), DATA],
    "a torch name that is no type": [header(one("torch", "load", [1], False)), DATA],
    "a dotted torch name": [header(one("torch", "os.system", [1], False)), DATA],
    "a huge tensor": [header(one("torch", "float32", [1 << 50], False)), DATA],
    "an unknown kind": [header(one("pickle", "<f8", [1], False)), DATA],
    "too few buffers": [header(one("numpy", "<f8", [1], False))],
    "too many buffers": [header(one("numpy", "<f8", [1], False)), DATA, DATA],
    "too few bytes": [header(one("numpy", "<f8", [1], False)), DATA[:-1]],
    "too many bytes": [header(one("numpy", "<f8", [1], False)), DATA + b"x"],
    "compressed data that are none": [header(one("numpy", "<f8", [1], True)), DATA],
    "a lie about compressed data": [header(one("numpy", "<f8", [1 << 40], True)), zlib.compress(DATA)],
    "compressed data with a tail": [header(one("numpy", "<f8", [1], True)), zlib.compress(DATA) + b"x"],
    "compressed data cut off": [header(one("numpy", "<f8", [1], True)), zlib.compress(DATA)[:-4]],
    "compressed data that are longer": [header(one("numpy", "<f8", [1], True)), zlib.compress(bytes(1 << 24))],
    "deeply nested": [header(deep(100))],
    "brackets": [b"0003" + b"[" * 100_000],
    "a number of many digits": [b"0003" + b"1" * 100_000],
    "metadata with the name of a field": [header({"fields": {"a": None}, "metadata": {"a": 1}})],
    "metadata that are a list": [header({"fields": {}, "metadata": []})],
    "fields that are a list": [header({"fields": [], "metadata": {}})],
    "no metadata": [header({"fields": {}})],
    "more keys": [header({"fields": {}, "metadata": {}, "__reduce__": 1})],
    "a list in a list": [header(one([1]))],
    "a header over the limit": [b"0003" + b" " * (MAX_HEADER_BYTES + 1)],
    "too many arrays": [b"0003null", *[b""] * (MAX_ARRAYS + 1)],
}


@pytest.mark.parametrize("frames", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_frames_are_refused_in_bounded_memory(frames: list[Any]) -> None:
    received = sum(map(len, frames))
    with bounded_memory(SMALL + 30 * received), pytest.raises(FrameError):
        loads(frames)


def test_compressed_data_take_no_more_memory_than_announced() -> None:
    bomb = zlib.compress(bytes(64 << 20), 9)
    with bounded_memory(SMALL), pytest.raises(FrameError, match="not the 100 bytes announced"):
        loads([header(one("numpy", "|u1", [100], True)), bomb])


@pytest.mark.budget(30, "ten thousand frames, each measured")
def test_ten_thousand_damaged_frames_are_refused_or_read_in_bounded_memory() -> None:
    draw = random.Random(40)
    x = from_dict(
        {
            "ids": np.arange(50),
            "mask": torch.ones(10, 5, dtype=torch.bool),
            "logits": torch.zeros(9, dtype=torch.bfloat16),
            "obs": {"x": np.zeros((10, 3), np.float32), "none": None},
            "scale": 1.5,
        },
        step=3,
    )
    sources = [[bytes(frame) for frame in dumps(x, method)] for method in ("raw_bytes", "raw_compress", "obs_compress")]
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(10_000):
            frames = _damaged(list(draw.choice(sources)), draw)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                found = loads(frames)
            except FrameError:
                refused += 1
            else:
                assert found is None or isinstance(found, NamedArray)
            assert tracemalloc.get_traced_memory()[1] - before < SMALL + 1040 * sum(map(len, frames))
    finally:
        tracemalloc.stop()
    assert refused > 5000


def _damaged(frames: list[bytes], draw: random.Random) -> list[bytes]:
    """Returns frames that were cut, exchanged, lost, doubled, or that have other bytes or numbers in the header."""
    way = draw.randrange(7)
    at = draw.randrange(len(frames))
    if way == 0:
        frames[at] = frames[at][: draw.randrange(len(frames[at]) + 1)]
    elif way == 1:
        frames[at] = draw.randbytes(draw.randrange(200))
    elif way == 2:
        del frames[at]
    elif way == 3:
        frames.insert(at, frames[draw.randrange(len(frames))])
    elif way == 4:
        frames = [draw.randbytes(draw.randrange(100)) for _ in range(draw.randrange(6))]
    elif way == 5:
        text = bytearray(frames[0])
        for _ in range(draw.randrange(1, 8)):
            text[draw.randrange(4, len(text))] = draw.randrange(256)
        frames[0] = bytes(text)
    else:
        digits = [index for index, byte in enumerate(frames[0]) if index > 3 and 48 <= byte <= 57]
        index = draw.choice(digits)
        frames[0] = frames[0][:index] + str(draw.choice((0, 7, 1 << 31, 1 << 63, -5))).encode() + frames[0][index + 1 :]
    return frames
