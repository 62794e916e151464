"""A reverse proxy that records the requests of a client and their answers.

``python -m tests.support.recording_proxy MASTER_URL FILE`` prints its own address and appends one JSON line for each
exchange. In a test: ``with recording(url) as proxy``.
"""

import http.client
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "host"}


@dataclass
class Exchange:
    """One request as it was sent, and its answer. ``target``: path and query."""

    method: str
    target: str
    content_type: str | None
    body: str
    status: int = 0
    answer: str = ""


@dataclass
class Proxy:
    url: str
    exchanges: list[Exchange] = field(default_factory=list)

    def seen(self, method: str, path: str) -> list[Exchange]:
        return [e for e in self.exchanges if e.method == method and urlsplit(e.target).path == path]


@contextmanager
def recording(master: str, keep: Callable[[Exchange], None] | None = None) -> Iterator[Proxy]:
    proxy = Proxy("")
    upstream = urlsplit(master)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length) if length else b""
            exchange = Exchange(self.command, self.path, self.headers.get("content-type"), body.decode("latin-1"))
            link = http.client.HTTPConnection(upstream.hostname or "", upstream.port or 80)
            sent = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            link.request(self.command, self.path, body or None, sent)
            answer = link.getresponse()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            passed = b""
            while part := answer.read1(65536):
                passed += part
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            link.close()
            exchange.status, exchange.answer = answer.status, passed.decode("latin-1")
            proxy.exchanges.append(exchange)
            if keep:
                keep(exchange)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _pass

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    master, path = sys.argv[1:]
    lock = threading.Lock()
    with open(path, "a", buffering=1) as file:

        def keep(exchange: Exchange) -> None:
            with lock:
                print(json.dumps(asdict(exchange)), file=file)

        with recording(master, keep) as proxy:
            print(proxy.url, flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
