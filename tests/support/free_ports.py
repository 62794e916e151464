"""Ports of this machine on which nobody listens, and connected sockets."""

import contextlib
import random
import socket

LISTENING = range(10_000, 20_000)
"""Below the ports that Linux gives to outgoing connections: those of other tests would take a free one before its
user listens on it."""
_random = random.SystemRandom()
"""Not the generator that tests seed: they would pick the same port in two workers at a time."""


def free_port() -> int:
    """Returns a free port of this machine."""
    return free_block(1)


def free_block(count: int) -> int:
    """Returns the first of several free ports in a row: the containers of one machine have one each."""
    while True:
        first = _random.choice(LISTENING)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("", port))
            return first


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Returns both ends of a TCP connection on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        return ours, theirs
