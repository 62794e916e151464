"""A master with scripted answers that stops and starts again at the same address."""

import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class RestartingMaster:
    """Answers requests from a table. ``answers["GET /path"]`` returns JSON, or an iterator of log lines, which is
    streamed.

    An answer may call :meth:`stop`. It is still delivered: whole, or cut inside its last line if ``cuts`` is set.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[], Any]] = {}
        self.asked: list[str] = []
        self.lives = 0
        self.cuts = False
        self.is_up = False
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self.start()
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts to listen, at the same port each time."""
        server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        server.daemon_threads = True
        server.block_on_close = False
        self._port = server.server_address[1]
        self._server, self.is_up = server, True
        self.lives += 1
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Stops listening: refuses new connections, and closes open ones after their answer."""
        server, self._server, self.is_up = self._server, None, False
        if server is not None:
            server.shutdown()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        master = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if not master.is_up:  # a connection that was kept open is closed with its server
                    self.close_connection = True
                    return
                path = re.sub("[0-9a-f]{64}", "{}", self.path.partition("?")[0])
                line = f"{self.command} {path}"
                master.asked.append(line)
                answer = master.answers[line]()
                if isinstance(answer, Iterator):
                    self._stream(answer)
                else:
                    data = json.dumps(answer).encode()
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                self.close_connection = self.close_connection or not master.is_up

            def _stream(self, lines: Iterator[dict[str, Any]]) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in lines:
                    data = json.dumps({"result": line}).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                if not master.is_up and master.cuts:
                    self.wfile.write(b"40\r\n" + b'{"result": {"id": "99", "mess')
                    self.close_connection = True
                    return
                self.wfile.write(b"0\r\n\r\n")

            do_GET = do_POST = do_HEAD = do_PUT = _serve

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def restarting() -> Iterator[RestartingMaster]:
    """Yields a master and stops it at the end of the block."""
    master = RestartingMaster()
    try:
        yield master
    finally:
        master.stop()


class RestartWhenReportedLost(io.StringIO):
    """Standard error of a command. Starts the master again when the command prints that it waits for the master."""

    def __init__(self, master: RestartingMaster) -> None:
        super().__init__()
        self._master = master

    def write(self, text: str) -> int:
        if "waiting for the master" in text:
            self._master.start()
        return super().write(text)
