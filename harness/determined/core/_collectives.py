"""Collective operations over sockets: every worker connects to the chief. Both ends prove the key before unpickling.

A frame is a length and a body. The handshake, in which the worker sends its rank, comes first.
"""

import os
import pickle
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from determined.core._own_process import OwnProcess
from determined_launch import handshake

PATIENCE_SECONDS = 600.0
_ENDS = (b"worker", b"chief")
_LENGTH = struct.Struct("!Q")
_RANK = struct.Struct("!I")


class Collectives(Protocol):
    """Collective operations of a group of workers. All members call the same operations in the same order."""

    def gather(self, value: object) -> list[Any] | None:
        """Returns the values of all members in rank order on the chief, None elsewhere."""

    def broadcast(self, value: object) -> Any:  # noqa: ANN401  # any picklable object of the caller
        """Returns the chief's value on every member."""

    def close(self) -> None:
        """Closes the sockets."""


class SingleProcessCollectives:
    """Collective operations of a group with one member."""

    def gather(self, value: object) -> list[Any] | None:
        return [value]

    def broadcast(self, value: object) -> Any:  # noqa: ANN401  # any picklable object of the caller
        return value

    def close(self) -> None:
        pass


class ChiefCollectives:
    """The chief's side: listens until every worker has proved the key, or the time for all of them is over.

    Drops a peer that cannot prove the key in time.
    """

    def __init__(self, listener: socket.socket, size: int, key: bytes) -> None:
        self._process = OwnProcess()
        self._workers: dict[int, socket.socket] = {}
        with listener:
            listener.listen(size * 2)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(self._workers) < size - 1:
                peer = _accept(listener, deadline)
                if peer is None:
                    missing = sorted(set(range(1, size)) - set(self._workers))
                    raise TimeoutError(f"workers of rank {missing} did not connect in time")
                rank = _admit(peer, key)
                if rank is None or rank in self._workers or not 0 < rank < size:
                    peer.close()
                else:
                    self._workers[rank] = peer

    def gather(self, value: object) -> list[Any] | None:
        self._process.require("collective operations run")
        return [value, *(pickle.loads(_receive(self._workers[rank], rank)) for rank in sorted(self._workers))]

    def broadcast(self, value: object) -> Any:  # noqa: ANN401  # any picklable object of the caller
        self._process.require("collective operations run")
        data = pickle.dumps(value)
        for rank in sorted(self._workers):
            _send(self._workers[rank], data, rank)
        return value

    def close(self) -> None:
        for peer in self._workers.values():
            peer.close()


class WorkerCollectives:
    """A worker's side: one connection to the chief."""

    def __init__(self, connect: Callable[[], socket.socket], rank: int, key: bytes) -> None:
        self._process = OwnProcess()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._chief = connect()
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"cannot connect to the chief: {error}") from None
                time.sleep(0.05)
        # the chief may still be busy with others
        handshake.prove(self._chief, key, _RANK.pack(rank), ends=_ENDS, patience=PATIENCE_SECONDS)

    def gather(self, value: object) -> list[Any] | None:
        self._process.require("collective operations run")
        _send(self._chief, pickle.dumps(value), 0)
        return None

    def broadcast(self, value: object) -> Any:  # noqa: ANN401  # any picklable object of the caller
        self._process.require("collective operations run")
        return pickle.loads(_receive(self._chief, 0))

    def close(self) -> None:
        self._chief.close()


def over_tcp(rank: int, size: int, host: str, port: int, key: bytes) -> Collectives:
    """Returns a group whose chief listens on ``host:port``."""
    if size == 1:
        return SingleProcessCollectives()
    if rank == 0:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        return ChiefCollectives(listener, size, key)
    return WorkerCollectives(lambda: socket.create_connection((host, port), timeout=handshake.SECONDS), rank, key)


def over_unix(rank: int, size: int, path: Path, key: bytes) -> Collectives:
    """Returns a group on one machine.

    Opens the socket below a folder descriptor because a socket path may be too long.
    """
    if size == 1:
        return SingleProcessCollectives()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        short = f"/proc/self/fd/{folder}/{path.name}"
        if rank == 0:
            path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(short)
            path.chmod(0o600)
            star = ChiefCollectives(listener, size, key)
            path.unlink(missing_ok=True)
            return star
        return WorkerCollectives(lambda: _connect_unix(short), rank, key)
    finally:
        os.close(folder)


def _connect_unix(path: str) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        peer.settimeout(handshake.SECONDS)
        peer.connect(path)
    except OSError:
        peer.close()
        raise
    return peer


def _accept(listener: socket.socket, deadline: float) -> socket.socket | None:
    """Returns the next peer, or None after the deadline."""
    left = deadline - time.monotonic()
    if left <= 0:
        return None
    listener.settimeout(left)
    try:
        return listener.accept()[0]
    except TimeoutError:
        return None


def _admit(peer: socket.socket, key: bytes) -> int | None:
    """Returns the rank of a peer that proves the key, else None."""
    said = handshake.admit(peer, key, said=_RANK.size, ends=_ENDS)
    return None if said is None else int(_RANK.unpack(said)[0])


def _send(peer: socket.socket, data: bytes, rank: int) -> None:
    try:
        peer.sendall(_LENGTH.pack(len(data)) + data)
    except OSError:
        raise ConnectionError(f"lost the connection to the worker of rank {rank}") from None


def _receive(peer: socket.socket, rank: int) -> bytes:
    try:
        return _exactly(peer, _LENGTH.unpack(_exactly(peer, _LENGTH.size))[0])
    except (OSError, EOFError):
        raise ConnectionError(f"lost the connection to the worker of rank {rank}") from None


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = peer.recv(min(count - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
