"""The gate of a stream's port: ZeroMQ asks it about each new peer before it reads a message of that peer.

Without it a stranger could fill the memory with the parts of a message that never ends: ZeroMQ collects the parts of a
message before anybody sees them, and limits only the size of each. Who reads the network can learn what opens the gate
(it is sent as it is), but not the key, which a worker proves behind it.
"""

import hmac

import zmq

from determined_workflows.rlhf.task.stream_messages import GATE_USER, gate_password

ADDRESS = "inproc://zeromq.zap.01"
"""Where ZeroMQ looks for who authenticates peers (ZAP, RFC 27)."""


class Gate:
    """Answers ZeroMQ's questions about peers. ``socket`` is readable when there is one."""

    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]", key: bytes) -> None:
        self._password = gate_password(key)
        self.socket = context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(ADDRESS)

    def answer(self) -> str:
        """Answers one question. Returns why the peer was refused, or an empty text."""
        version, request, _, address, _, mechanism, *proof = self.socket.recv_multipart()
        is_known = (
            mechanism == b"PLAIN"
            and len(proof) == 2
            and proof[0] == GATE_USER
            and hmac.compare_digest(proof[1], self._password)
        )
        code = (b"200", b"OK") if is_known else (b"400", b"wrong key")
        self.socket.send_multipart([version, request, *code, b"", b""])
        return "" if is_known else f"a peer at {address.decode('ascii', 'replace')} without the allocation's key"

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close(0)
