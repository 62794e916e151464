"""The eight codecs of NamedArray by name. Four are safe frames; four pickle, as in 2023, and are refused by default."""

from collections.abc import Callable, Sequence
from typing import Any

from determined_workflows.rlhf.task import frames as safe
from determined_workflows.rlhf.task import pickled_frames
from determined_workflows.rlhf.task.array_tree import NamedArray
from determined_workflows.rlhf.task.frames import FrameError
from determined_workflows.rlhf.task.registry import unknown_name

METHODS = (
    "pickle_dict",
    "pickle",
    "raw_bytes",
    "raw_compress",
    "compress_pickle",
    "pickle_compress",
    "obs_compress",
    "compress_except_policy_state",
)
CODES = {method: b"%04d" % (index + 1) for index, method in enumerate(METHODS)}
NAMES = {code: method for method, code in CODES.items()}
IS_PACKED: dict[str, Callable[[str], bool]] = {
    "raw_bytes": lambda name: False,
    "raw_compress": lambda name: True,
    "obs_compress": lambda name: name.split(".")[0] == "obs",
    "compress_except_policy_state": lambda name: name.split(".")[0] != "policy_state",
}
"""The safe codecs: which fields, by their dotted names, are compressed."""


def dumps(x: NamedArray | None, method: str) -> list[Any]:
    """Returns the frames of ``x``; see ``named_array.dumps``."""
    if method not in CODES:
        raise ValueError(unknown_name("codec", method, METHODS))
    if x is not None and not isinstance(x, NamedArray):
        raise TypeError(f"dumps takes a NamedArray, not {type(x).__name__}: make one by from_dict")
    if method in IS_PACKED:
        return safe.encode(x, CODES[method], IS_PACKED[method])
    return pickled_frames.encode(x, CODES[method], method)


def loads(frames: Sequence[Any], *, allow_pickle: bool) -> Any:  # noqa: ANN401
    """Returns the NamedArray of ``frames``; see ``named_array.loads``."""
    if not frames:
        raise FrameError("no frames")
    first = memoryview(frames[0]).cast("B")
    method = NAMES.get(bytes(first[:4]))
    if method is None:
        raise FrameError("frames of no known codec")
    if method in IS_PACKED:
        return safe.decode(first[4:], frames[1:])
    if not allow_pickle:
        raise FrameError(f"frames of the codec {method} are pickled and may run any program: they are refused")
    return pickled_frames.decode(frames[1:], method)
