"""Requests from one container to another container's server."""

import socket
import time
from collections.abc import Mapping
from typing import Any

from determined_launch import handshake
from determined_launch.channel import frames
from determined_launch.channel.frames import Connection
from determined_launch.channel.server import ENDS

_RETRY_SECONDS = 0.1


def connect(address: str, port: int, key: bytes, request: Mapping[str, Any], *, patience: float) -> Connection:
    """Returns an authenticated connection that has sent its request.

    Raises ConnectionError after ``patience`` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            peer = socket.create_connection((address, port), timeout=max(0.1, min(5.0, patience)))
            break
        except OSError as error:
            if time.monotonic() > deadline:
                raise ConnectionError(f"{address}:{port} is unreachable: {error.strerror or error}") from None
            time.sleep(_RETRY_SECONDS)
    handshake.prove(peer, key, b"", ends=ENDS, patience=handshake.SECONDS)
    connection = Connection(peer)
    connection.send_json(frames.REQUEST, request)
    return connection


def ask(address: str, port: int, key: bytes, request: Mapping[str, Any], *, patience: float) -> Any:  # noqa: ANN401  # decoded JSON
    """Returns the answer to a request that has a single answer."""
    connection = connect(address, port, key, request, patience=patience)
    try:
        connection.patience(patience)
        return connection.receive_json(frames.ANSWER)
    finally:
        connection.close()
