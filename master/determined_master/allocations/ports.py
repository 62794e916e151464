"""Chooses a block of ports for the workers of an allocation that no other live allocation has. Pure."""

import zlib
from collections.abc import Collection

from determined_launch import environment as names
from determined_master.settings.settings import PORT_BLOCKS as BLOCKS

ALL_BLOCKS = range(BLOCKS)
_WIDTH = 20
_FIRST = {names.SSH_PORT: 12350, names.COMM_PORT_1: 12360, names.COMM_PORT_2: 12365}
# Far below the range from which the kernel takes ports of outgoing connections.
_FIRST_C10D, _C10D_WIDTH = 23_000, 5


def choose(allocation_id: str, taken: Collection[int], blocks: range = ALL_BLOCKS) -> int:
    """Returns the one of ``blocks`` that no live allocation has. Each attempt starts at another block, so that a port
    in use by another process does not fail a trial again and again.

    >>> choose("task.1", {100}, range(100, 102))
    101
    """
    first = zlib.crc32(allocation_id.encode()) % len(blocks)
    turned = (blocks[(first + number) % len(blocks)] for number in range(len(blocks)))
    return next((block for block in turned if block not in taken), blocks[first])


def ports_of(block: int) -> dict[str, int]:
    """Returns the ports by the names of their environment variables.

    >>> ports_of(0)["C10D_PORT"]
    23000
    """
    ports = {name: first + _WIDTH * block for name, first in _FIRST.items()}
    return ports | {names.C10D_PORT: _FIRST_C10D + _C10D_WIDTH * block}
