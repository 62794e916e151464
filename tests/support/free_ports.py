"""Ports of this machine on which nobody listens, and connected sockets."""

import socket


def free_port() -> int:
    """Returns a free port of 127.0.0.1."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Returns both ends of a TCP connection on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        return ours, theirs
