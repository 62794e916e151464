"""Ports of this machine on which nobody listens, and connected sockets."""

import contextlib
import socket


def free_port() -> int:
    """Returns a free port of 127.0.0.1."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def free_block(count: int) -> int:
    """Returns the first of several free ports in a row: the containers of one machine have one each."""
    while True:
        first = free_port()
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, OverflowError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Returns both ends of a TCP connection on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        return ours, theirs
