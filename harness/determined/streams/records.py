"""Records of a stream and their bytes: one byte for the kind, then the content. Pure.

A stream carries *records* in both directions. An ``OFFSET`` is not a record: it says how many bytes of records its
sender has taken, and may stand between any two of them.
"""

import json
import struct
from enum import IntEnum
from typing import Any, NamedTuple

from determined.errors import DeterminedError

MAX_CONTENT_BYTES = 64 << 10
MAX_RECORD_BYTES = MAX_CONTENT_BYTES + 1
SUBPROTOCOL = "detent.stream.v1"
"""Subprotocol of the websocket; the second one that a side offers is its key."""
NORMAL = 1000
"""Close code of a side that has ended the stream by intention."""
FIRST_OWN, LAST_OWN = 4000, 4999
"""Close codes of this protocol: with one of them the reason says why the stream cannot go on."""
_OFFSET = struct.Struct(">BQ")


class StreamBroken(DeterminedError):
    """The other side sent what no version of this protocol sends."""


class Kind(IntEnum):
    """Kinds of records. Those up to ``SIGNAL`` go to the task or come from it, see each."""

    INPUT = 0
    """Bytes for the task."""
    OUTPUT = 1
    """Bytes from the task; of a terminal, all of them."""
    ERROR_OUTPUT = 2
    """Bytes of its standard error."""
    STATUS = 3
    """The end, from the task: ``{code}``, ``{signal}`` or ``{error}``."""
    RESIZE = 4
    """Size of the terminal, for the task: ``{rows, columns}``."""
    SIGNAL = 5
    """A signal for the task: ``{signal}``, a number."""
    END = 6
    """No more bytes follow in this direction."""
    OFFSET = 7
    ADMITTED = 8
    """The client of an SSH stream has shown a key that is let in; from the task, without content."""


class Record(NamedTuple):
    """One record."""

    kind: Kind
    content: bytes = b""

    @property
    def value(self) -> dict[str, Any]:
        """Returns the JSON object in the content. Raises StreamBroken."""
        try:
            value = json.loads(self.content)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise StreamBroken(f"a record {self.kind.name} has no JSON object")
        return value


def is_final(code: int) -> bool:
    """Returns True if a connection with this close code is not to be replaced by another one."""
    return code == NORMAL or FIRST_OWN <= code <= LAST_OWN


def record_of(kind: Kind, value: dict[str, Any]) -> Record:
    """Returns a record with a JSON object."""
    return Record(kind, json.dumps(value).encode())


def encode(record: Record) -> bytes:
    return bytes((record.kind,)) + record.content


def encode_offset(offset: int) -> bytes:
    return _OFFSET.pack(Kind.OFFSET, offset)


def decode(message: bytes) -> Record | int:
    """Returns a record, or the offset that a message tells. Raises StreamBroken."""
    if not message or message[0] > Kind.ADMITTED:
        raise StreamBroken("a message of an unknown kind")
    if len(message) > MAX_RECORD_BYTES:
        raise StreamBroken(f"a message of {len(message)} bytes; at most {MAX_RECORD_BYTES} are allowed")
    if message[0] != Kind.OFFSET:
        return Record(Kind(message[0]), message[1:])
    if len(message) != _OFFSET.size:
        raise StreamBroken("an offset that is no number of eight bytes")
    return int(_OFFSET.unpack(message)[1])
