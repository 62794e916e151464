"""The four codecs of 2023 that pickle. Whoever loads such frames runs what their sender wants."""

import pickle
import zlib
from collections.abc import Sequence
from typing import Any

from determined_workflows.rlhf.task.array_tree import NamedArray, from_dict
from determined_workflows.rlhf.task.frames import FrameError


def encode(x: NamedArray | None, code: bytes, method: str) -> list[Any]:
    """Returns the frames of ``x`` by ``pickle``, ``pickle_dict``, ``pickle_compress`` or ``compress_pickle``."""
    if method == "pickle_dict" and x is not None:
        return [code, pickle.dumps((x.to_dict(), dict(x.metadata)), protocol=5)]
    if method == "compress_pickle":  # each array by itself
        buffers: list[pickle.PickleBuffer] = []
        text = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
        return [code, text, *(zlib.compress(buffer.raw(), 1) for buffer in buffers)]
    text = pickle.dumps(x, protocol=5)
    return [code, zlib.compress(text, 1) if method == "pickle_compress" else text]


def decode(frames: Sequence[Any], method: str) -> Any:  # noqa: ANN401
    """Returns what ``encode`` was given. Raises FrameError for damaged frames."""
    if not frames:
        raise FrameError(f"no frame after that of the codec {method}")
    try:
        if method == "compress_pickle":
            return pickle.loads(frames[0], buffers=[bytearray(zlib.decompress(frame)) for frame in frames[1:]])
        text = zlib.decompress(frames[0]) if method == "pickle_compress" else frames[0]
        loaded = pickle.loads(text)
    except Exception as error:
        raise FrameError(f"damaged frames of the codec {method}: {type(error).__name__}: {error}") from error
    return from_dict(loaded[0], **loaded[1]) if method == "pickle_dict" and loaded is not None else loaded
