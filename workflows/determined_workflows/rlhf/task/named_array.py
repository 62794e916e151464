"""NamedArray: numpy arrays or torch tensors by names, nested, that are sliced and sent together.

Users' files do ``from base.namedarray import *``; the module of a project is a star import of this one.
"""

# No __all__: users import functions and the class from a star import of this module.
from collections.abc import Sequence
from typing import Any

from determined_workflows.rlhf.task import codecs as _codecs
from determined_workflows.rlhf.task.array_tree import *  # noqa: F403
from determined_workflows.rlhf.task.array_tree import NamedArray


def dumps(x: NamedArray | None, method: str = "raw_bytes") -> list[Any]:
    """Returns frames (bytes or buffers of the arrays themselves, not copies) to send.

    Parameters:
        method: ``raw_bytes``, ``raw_compress``, ``obs_compress`` or ``compress_except_policy_state``; or one that
            pickles: ``pickle``, ``pickle_dict``, ``compress_pickle``, ``pickle_compress``.

    Raises:
        ValueError: unknown method.
        TypeError: a field or metadata that the method cannot send.
    """
    return _codecs.dumps(x, method)


def loads(frames: Sequence[Any], *, allow_pickle: bool = False) -> Any:  # noqa: ANN401
    """Returns the NamedArray of frames that ``dumps`` gave. Arrays use the memory of frames that are writable.

    Parameters:
        allow_pickle: accept frames that were pickled. They can run any program: never for frames of a peer.

    Raises:
        FrameError: frames that ``dumps`` does not give, or pickled ones.
    """
    return _codecs.loads(frames, allow_pickle=allow_pickle)
