"""A reverse proxy in threads that serves a master under a path prefix."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator


class PrefixProxy(socketserver.ThreadingTCPServer):
    """Strips the prefix and adds a header with it. It serves one request per connection, so that it parses only its
    head."""

    request_queue_size = 64

    def __init__(self, port: int, prefix: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port, self.prefix = port, prefix
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        """Cuts every connection and waits until none is being served."""
        self.shutdown()
        self._thread.join(30)
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Returns a connection that is registered before its thread starts, so that ``close`` always reaches it."""
        connection, address = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)


class _Connection(socketserver.StreamRequestHandler):
    server: PrefixProxy

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            lines = list(iter(lambda: self.rfile.readline(65536).decode("latin-1").strip(), ""))
            if not lines:
                return
            method, path, version = lines[0].split(" ")
            if not path.startswith(f"{self.server.prefix}/"):
                self.request.sendall(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                return
            forwarded = [line for line in lines[1:] if not line.lower().startswith("connection:")]
            head = [f"{method} {path.removeprefix(self.server.prefix)} {version}", *forwarded]
            head += [f"X-Forwarded-Prefix: {self.server.prefix}", "Connection: close", "", ""]
            with socket.create_connection(("127.0.0.1", self.server.port)) as upstream:
                upstream.sendall("\r\n".join(head).encode("latin-1"))
                forth = threading.Thread(target=self._pour_forth, args=(upstream,))
                forth.start()
                try:
                    while data := upstream.recv(65536):
                        self.request.sendall(data)
                finally:
                    with contextlib.suppress(OSError):
                        self.request.shutdown(socket.SHUT_RDWR)
                    forth.join()

    def _pour_forth(self, upstream: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := self.rfile.read1(65536):
                upstream.sendall(data)
            # The browser has disconnected, so nobody reads the rest of the master's answer.
            upstream.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def prefix_proxy(port: int, prefix: str) -> Iterator[PrefixProxy]:
    created = PrefixProxy(port, prefix)
    try:
        yield created
    finally:
        created.close()
