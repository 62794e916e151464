"""The server of a container: authenticates clients and answers one request per connection."""

import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from determined_launch import handshake, ports
from determined_launch.channel import frames
from determined_launch.channel.frames import Closed, Connection
from determined_launch.errors import LaunchError

ENDS = (b"caller", b"container")
"""Names of the two sides in the handshake."""
MAX_UNPROVED = 128
"""Maximum number of connections that are not yet authenticated; one more drops the oldest."""
_PAUSE_SECONDS = 0.05

Verb = Callable[[Connection, Mapping[str, Any]], None]


class Server:
    """Listens in threads of its own from construction until ``close``."""

    def __init__(self, address: str, port: int, key: bytes, verbs: Mapping[str, Verb]) -> None:
        self._key = key
        self._verbs = verbs
        self._unproved: OrderedDict[int, socket.socket] = OrderedDict()
        self._lock = threading.Lock()
        self._listener = _listen(address, port)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="channel", daemon=True).start()

    def close(self) -> None:
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                if self._listener.fileno() < 0:
                    return
                time.sleep(_PAUSE_SECONDS)  # no descriptor is free, or the client has disconnected
                continue
            with self._lock:
                self._unproved[id(peer)] = peer
                while len(self._unproved) > MAX_UNPROVED:
                    _drop(self._unproved.popitem(last=False)[1])
            try:
                threading.Thread(target=self._serve, args=(peer,), name="channel", daemon=True).start()
            except RuntimeError:  # at a limit of threads: the next client may have more luck
                with self._lock:
                    self._unproved.pop(id(peer), None)
                peer.close()
                time.sleep(_PAUSE_SECONDS)

    def _serve(self, peer: socket.socket) -> None:
        with peer:
            is_admitted = handshake.admit(peer, self._key, said=0, ends=ENDS) is not None
            with self._lock:
                self._unproved.pop(id(peer), None)
            if not is_admitted:
                return
            connection = Connection(peer)
            try:
                request = connection.receive_json(frames.REQUEST)
                verb = self._verbs.get(str(request.get("verb"))) if isinstance(request, dict) else None
                if verb is None:
                    connection.send(frames.REFUSED, b"no such verb")
                else:
                    verb(connection, request)
            except Closed:
                pass
            finally:
                connection.close()


def _listen(address: str, port: int) -> socket.socket:
    """Listens on the container's own address if this machine has it, else on all addresses."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    everywhere = "::" if family == socket.AF_INET6 else ""
    for host in (address, everywhere):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(256)
        except OSError as error:
            listener.close()
            reason = error
        else:
            return listener
    ports.check(port, "the command channel (DTRAIN_SSH_PORT)")
    raise LaunchError(f"the command channel cannot listen at {address}:{port}: {reason.strerror}")


def _drop(peer: socket.socket) -> None:
    try:
        peer.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
