"""The safe frame format: a JSON header and one raw buffer for each array. Nothing in it can be executed.

The first frame is four digits of the codec and the header; each array has one frame after it, in the order of the
header. A node of the header is ``{"fields": {name: node}, "metadata": {…}}`` for a NamedArray, null, ``[value]`` for
a Python number or text, or ``[kind, type, shape, packed]`` for an array.
"""

import json
import math
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from determined_workflows.rlhf.task.array_tree import NamedArray

MAX_HEADER_BYTES = 4 << 20
MAX_DEPTH = 32
MAX_ARRAYS = 16384
MAX_RATIO = 1040
"""zlib makes at most 1032 bytes of one: an announced size above that is a lie, refused before anything is unpacked."""
NUMPY, NUMBER, TORCH = "numpy", "number", "torch"
_TORCH_TYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)


class FrameError(ValueError):
    """Frames that are damaged, hostile or of another format."""


def encode(x: NamedArray | None, code: bytes, is_packed: Callable[[str], bool]) -> list[Any]:
    """Returns header and buffers. ``is_packed`` says of a field's dotted name if its buffer is compressed."""
    buffers: list[Any] = []
    node = _node(x, "", buffers, is_packed)
    try:
        header = json.dumps(node, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise TypeError(f"metadata that JSON cannot hold: {error}") from error
    if len(header) > MAX_HEADER_BYTES:
        raise ValueError(f"names and metadata take {len(header)} bytes of at most {MAX_HEADER_BYTES}")
    return [code + header, *buffers]


def decode(header: bytes | memoryview, buffers: Sequence[Any]) -> NamedArray | None:
    """Returns what ``encode`` was given. Raises FrameError; memory is bounded by the bytes of the frames."""
    if len(header) > MAX_HEADER_BYTES or len(buffers) > MAX_ARRAYS:
        raise FrameError(f"a header of {len(header)} bytes for {len(buffers)} arrays is over the limit")
    try:
        node = json.loads(bytes(header))
        reader = _Reader(buffers)
        decoded = reader.read(node, 0)
    except FrameError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, MemoryError, RuntimeError) as error:
        raise FrameError(f"damaged frames: {type(error).__name__}: {error}"[:500]) from error
    if reader.used != len(buffers):
        raise FrameError(f"{len(buffers)} buffers for {reader.used} arrays")
    if not (decoded is None or isinstance(decoded, NamedArray)):
        raise FrameError("the header is no NamedArray")
    return decoded


def _node(x: Any, name: str, buffers: list[Any], is_packed: Callable[[str], bool]) -> Any:  # noqa: ANN401
    if x is None:
        return None
    if isinstance(x, NamedArray):
        fields = {key: _node(leaf, f"{name}.{key}" if name else key, buffers, is_packed) for key, leaf in x.items()}
        if not _has_text_keys(dict(x.metadata)):
            raise TypeError(f"metadata with keys that are no texts: {dict(x.metadata)!r:.200}")
        return {"fields": fields, "metadata": dict(x.metadata)}
    if isinstance(x, (bool, int, float, str)) and not isinstance(x, np.generic):
        return [x]
    kind, form, shape, buffer = _parts(x, name)
    packed = is_packed(name)
    buffers.append(zlib.compress(buffer, 1) if packed else buffer)
    return [kind, form, shape, packed]


def _has_text_keys(value: object) -> bool:
    """Returns False if JSON would turn keys into texts."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _has_text_keys(inner) for key, inner in value.items())
    return not isinstance(value, (list, tuple)) or all(map(_has_text_keys, value))


def _parts(x: Any, name: str) -> tuple[str, str, list[int], Any]:  # noqa: ANN401
    """Returns kind, type, shape and bytes of an array; the bytes are those of the array if they are in one piece."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        form = str(x.dtype).removeprefix("torch.")
        if form not in _TORCH_TYPES or x.layout is not torch.strided:
            raise TypeError(f"the field {name!r} is a tensor of {x.dtype} and {x.layout}, which cannot be sent")
        flat = x.detach().cpu().contiguous().reshape(-1)
        return TORCH, form, list(x.shape), flat.view(torch.uint8).numpy().data
    array = np.asarray(x)
    if array.dtype.kind not in "biufcSUMm" or array.dtype.names:
        raise TypeError(f"the field {name!r} is {type(x).__name__} of {array.dtype}, which cannot be sent")
    kind = NUMBER if isinstance(x, np.generic) else NUMPY
    return kind, array.dtype.str, list(array.shape), np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


class _Reader:
    """Reads nodes of a header in order, and takes a buffer for each array."""

    def __init__(self, buffers: Sequence[Any]) -> None:
        self.buffers = buffers
        self.used = 0

    def read(self, node: Any, depth: int) -> Any:  # noqa: ANN401
        if node is None:
            return None
        if depth > MAX_DEPTH:
            raise FrameError(f"nested more than {MAX_DEPTH} times")
        if isinstance(node, dict):
            fields, metadata = node["fields"], node["metadata"]
            if len(node) != 2 or not isinstance(fields, dict) or not isinstance(metadata, dict):
                raise FrameError("a part of the header is no NamedArray")
            made = NamedArray(**{name: self.read(inner, depth + 1) for name, inner in fields.items()})
            made.register_metadata(**metadata)
            return made
        if isinstance(node, list) and len(node) == 1 and isinstance(node[0], (bool, int, float, str)):
            return node[0]
        if isinstance(node, list) and len(node) == 4:
            return self._array(*node)
        raise FrameError("a part of the header is no array")

    def _array(self, kind: object, form: object, shape: object, packed: object) -> Any:  # noqa: ANN401
        if not isinstance(form, str) or not isinstance(shape, list) or not isinstance(packed, bool):
            raise FrameError("an array without type and shape")
        if len(shape) > MAX_DEPTH or not all(type(size) is int and size >= 0 for size in shape):
            raise FrameError("a shape that no array has")
        if self.used >= len(self.buffers):
            raise FrameError("fewer buffers than arrays")
        buffer = memoryview(self.buffers[self.used]).cast("B")
        self.used += 1
        if kind == TORCH:
            return _tensor(form, shape, buffer, packed)
        if kind not in (NUMPY, NUMBER):
            raise FrameError("an array of an unknown kind")
        dtype = _dtype(form)
        array = _bytes_of(buffer, shape, dtype.itemsize, packed).view(dtype).reshape(shape)
        return array[()] if kind == NUMBER else array


def _dtype(form: str) -> "np.dtype[Any]":
    if len(form) > 40 or form[:1] not in ("<", ">", "|", "=") or form[1:2] not in tuple("biufcSUMm"):
        raise FrameError(f"arrays of type {form[:40]!r} are not accepted")
    dtype = np.dtype(form)
    if dtype.hasobject or dtype.itemsize == 0:
        raise FrameError(f"arrays of type {form[:40]!r} are not accepted")
    return dtype


def _tensor(form: str, shape: list[int], buffer: memoryview, packed: bool) -> Any:  # noqa: ANN401
    if form not in _TORCH_TYPES:
        raise FrameError(f"tensors of type {form[:40]!r} are not accepted")
    import torch

    dtype = getattr(torch, form)
    data = _bytes_of(buffer, shape, torch.empty(0, dtype=dtype).element_size(), packed)
    return torch.from_numpy(data).view(dtype).reshape(shape)


def _bytes_of(buffer: memoryview, shape: list[int], itemsize: int, packed: bool) -> "np.ndarray[Any, Any]":
    """Returns the bytes of an array, writable and aligned: the buffer itself where it is both, else a copy."""
    size = math.prod(shape) * itemsize
    if packed:
        if size > len(buffer) * MAX_RATIO:
            raise FrameError(f"{len(buffer)} compressed bytes cannot hold {size}")
        unpacker = zlib.decompressobj()
        try:
            data = bytearray(unpacker.decompress(buffer, size + 1))
        except zlib.error as error:
            raise FrameError(f"compressed data are damaged: {error}") from error
        if len(data) != size or not unpacker.eof or unpacker.unused_data:
            raise FrameError(f"compressed data are not the {size} bytes announced")
        return np.frombuffer(data, np.uint8)
    if len(buffer) != size:
        raise FrameError(f"{len(buffer)} bytes for an array of {size}")
    array = np.frombuffer(buffer, np.uint8)
    is_aligned = array.__array_interface__["data"][0] % min(itemsize & -itemsize, 16) == 0
    return array if is_aligned and not buffer.readonly else array.copy()
