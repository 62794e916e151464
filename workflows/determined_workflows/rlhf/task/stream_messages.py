"""Messages between the master worker and the other workers: their kinds, headers and limits."""

import dataclasses
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

import zmq

from determined_workflows.rlhf.task.frames import FrameError

MAX_FRAME_BYTES = 1 << 30
"""Default limit of one array in a message; larger frames close the connection before they are read."""
FRAMES_OF_A_MESSAGE = 4
"""A message has at most this many times the limit of a frame."""
MAX_METADATA_BYTES = 1 << 20
MAX_WAITING_MESSAGES = 4
LINGER_MILLISECONDS = 5000
"""How long a closed stream goes on sending its last message."""
ENDS = (b"worker", b"master worker")
"""Names of the ends in the proof of the key."""
GATE_USER = b"worker"
HELLO, CHALLENGE, ANSWER, WELCOME, REFUSED = b"hello", b"challenge", b"answer", b"welcome", b"refused"
REQUEST, REPLY, CLOSE = b"request", b"reply", b"close"


@dataclasses.dataclass
class Request:
    """A request of the master worker.

    Attributes:
        handle: what to do.
        data: a NamedArray or None.
        metadata: what was sent beside it (JSON).
        number: counts the requests of a worker from 1.
    """

    handle: str
    data: Any
    metadata: dict[str, Any]
    number: int


@dataclasses.dataclass
class Reply:
    """A worker's reply: a NamedArray or None, and metadata (JSON)."""

    data: Any
    metadata: dict[str, Any]


def gate_password(key: bytes) -> bytes:
    """Returns what a peer gives before it may send messages of any length: derived from the key, not the key."""
    return hmac.new(key, b"gate of the streams", hashlib.sha256).hexdigest().encode()


def header(**values: object) -> bytes:
    """Returns a message's header. Raises TypeError or ValueError for metadata that is no JSON, or large."""
    try:
        text = json.dumps(values, separators=(",", ":")).encode()
    except TypeError as error:
        raise TypeError(f"metadata of a request or reply is JSON: {error}") from None
    if len(text) > MAX_METADATA_BYTES:
        raise ValueError(f"metadata of {len(text)} bytes, at most {MAX_METADATA_BYTES}: send arrays as data")
    return text


def read_header(text: bytes | memoryview) -> tuple[int, str, dict[str, Any]]:
    """Returns number, handle and metadata of a header. Raises FrameError."""
    if len(text) > MAX_METADATA_BYTES:
        raise FrameError(f"a header of {len(text)} bytes")
    try:
        values = json.loads(bytes(text))
        number, handle, metadata = values["number"], values["handle"], values["metadata"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FrameError(f"a header that cannot be read: {type(error).__name__}") from None
    if type(number) is not int or not isinstance(handle, str) or not isinstance(metadata, dict):
        raise FrameError("a header of other types")
    return number, handle, metadata


def check_sizes(frames: Sequence[Any], max_frame_bytes: int, what: str) -> None:
    """Raises ValueError for a frame or a message over the limit."""
    sizes = [memoryview(frame).nbytes for frame in frames]
    limit, total = max_frame_bytes, FRAMES_OF_A_MESSAGE * max_frame_bytes
    if sizes and max(sizes) > limit:
        raise ValueError(f"{what} has an array of {max(sizes)} bytes, at most {limit} are sent: use smaller batches")
    if sum(sizes) > total:
        raise ValueError(f"{what} has {sum(sizes)} bytes, at most {total} are sent: use smaller batches")


def tune(peer: "zmq.Socket[bytes]", max_frame_bytes: int) -> None:
    """Sets limits of a socket: frames, messages that wait, and the time until a dead host is noticed (two minutes)."""
    peer.setsockopt(zmq.LINGER, LINGER_MILLISECONDS)
    peer.setsockopt(zmq.MAXMSGSIZE, max_frame_bytes + MAX_METADATA_BYTES)
    peer.setsockopt(zmq.RCVHWM, MAX_WAITING_MESSAGES)
    peer.setsockopt(zmq.SNDHWM, MAX_WAITING_MESSAGES)
    peer.setsockopt(zmq.TCP_KEEPALIVE, 1)
    peer.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 60)
    peer.setsockopt(zmq.TCP_KEEPALIVE_INTVL, 10)
    peer.setsockopt(zmq.TCP_KEEPALIVE_CNT, 6)


def endpoint(address: str, port: int | str) -> str:
    """Returns the address of a stream as ZeroMQ writes it; the port ``*`` is a free one."""
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"


def check_methods(workers: Sequence[str], methods: Mapping[str, str]) -> None:
    """Raises ValueError for methods of workers that do not exist."""
    unknown = sorted(set(methods) - set(workers))
    if unknown:
        raise ValueError(f"serialization methods of unknown workers: {', '.join(unknown)}")
