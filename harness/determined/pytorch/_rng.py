"""The random streams of the process: reads, sets and seeds them.

The streams are those of torch, NumPy and Python, and of the accelerators.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_MASK = (1 << 64) - 1


def mix(*numbers: int) -> int:
    """Returns a 64-bit number that depends on all of ``numbers`` and on their order (splitmix64)."""
    state = 0
    for number in numbers:
        state = (state + (number & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def seed_host(seed: int) -> None:
    """Seeds the streams of the processor, but not those of the accelerators."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)  # five times as fast as an array of numbers


def seed_all(seed: int) -> None:
    """Seeds every stream."""
    seed_host(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def capture_host() -> tuple[Any, Any, Any]:
    """Returns the state of the processor's streams in a form that is fast to take and to restore."""
    numpy = sys.modules.get("numpy")
    return torch.default_generator.get_state(), random.getstate(), None if numpy is None else numpy.random.get_state()


def restore_host(state: tuple[Any, Any, Any]) -> None:
    """Restores the state that :func:`capture_host` returned."""
    torch.default_generator.set_state(state[0])
    random.setstate(state[1])
    if state[2] is not None:
        sys.modules["numpy"].random.set_state(state[2])


@contextmanager
def apart(seed: int) -> Iterator[None]:
    """Seeds the processor's streams with ``seed`` inside the block and restores them afterwards."""
    kept = capture_host()
    seed_host(seed)
    try:
        yield
    finally:
        restore_host(kept)


def capture() -> dict[str, Any]:
    """Returns the state of every stream in values that ``torch.load`` reads without running code."""
    host, python, numpy = capture_host()
    state: dict[str, Any] = {"torch": host, "python": python, "numpy": None, "accelerators": []}
    if numpy is not None:
        name, keys, *rest = numpy
        state["numpy"] = (name, keys.tolist(), *rest)
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch has no types here
        state["accelerators"] = [torch.cuda.get_rng_state(index) for index in range(torch.cuda.device_count())]
    return state


def restore(state: dict[str, Any]) -> None:
    """Restores the state that :func:`capture` returned; accepts lists in place of tuples, as a file
    may contain them."""
    torch.default_generator.set_state(state["torch"])
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    if state["numpy"] is not None and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(tuple(state["numpy"]))
    for index, stream in enumerate(state["accelerators"]):
        if torch.cuda.is_available() and index < torch.cuda.device_count():
            torch.cuda.set_rng_state(stream, index)


@contextmanager
def untouched() -> Iterator[None]:
    """Restores every stream at the end of the block."""
    kept = capture()
    try:
        yield
    finally:
        restore(kept)
