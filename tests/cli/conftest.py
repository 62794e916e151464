"""A master with prepared answers on localhost, and a ``det`` that uses it."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from determined.client import auth_store
from determined_cli.main import main

Answer = tuple[int, Any]


@dataclass
class Request:
    """A request that the master received."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: bytes
    authorization: str | None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class FakeMaster:
    """A master with prepared answers.

    ``answers["GET /path"]`` is a value, (status, value), a Stream, or a function of the request.
    """

    url: str = ""
    answers: dict[str, Any] = field(default_factory=lambda: {"GET /api/v1/resource-pools": {"resourcePools": []}})
    requests: list[Request] = field(default_factory=list)

    def requests_to(self, line: str) -> list[Request]:
        """Returns the requests to "METHOD /path"."""
        return [request for request in self.requests if f"{request.method} {request.path}" == line]

    def answer(self, request: Request) -> Any:
        prepared = self.answers.get(f"{request.method} {request.path}")
        if request.path.startswith("/detent/ids/"):
            return {"ids": request.query["prefix"]}
        if prepared is None and request.path.startswith("/detent/trials/") and request.path.endswith("/logs"):
            return {"lines": []}
        if prepared is None:
            return error(404, 5, f"no {request.path}")
        return prepared(request) if callable(prepared) else prepared


def error(status: int, code: int, text: str, **more: Any) -> Answer:
    """Returns an error answer."""
    return status, {"error": {"code": code, "reason": "X", "error": text}, **more}


class Stream(list[dict[str, Any]]):
    """Lines that are sent one after the other."""


@pytest.fixture
def fake() -> Iterator[FakeMaster]:
    """Yields a master with prepared answers that serves on localhost."""
    master = FakeMaster()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, parts.path, parse_qs(parts.query), body, self.headers.get("Authorization"))
            master.requests.append(request)
            answer = master.answer(request)
            if isinstance(answer, Stream):
                self.stream(answer)
                return
            status, value = answer if isinstance(answer, tuple) else (200, answer)
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            kind = "application/octet-stream" if isinstance(value, bytes) else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def stream(self, lines: Stream) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in lines:
                data = json.dumps({"result": line}).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = handle_one

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    master.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield master
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of a user who never used ``det``."""
    for name in ("DET_MASTER", "DET_USER", "DET_PASS", "DET_USER_TOKEN", "DET_DEBUG", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@dataclass
class Outcome:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


Det = Callable[..., Outcome]


@pytest.fixture
def det(fake: FakeMaster, home: Path, capsys: pytest.CaptureFixture[str]) -> Det:
    """Returns a function that runs ``det`` in this process, signed in as ``ann``: ``det("e", "list")``."""
    auth_store.remember(fake.url, "ann", "T")
    auth_store.set_default_master(fake.url)

    def run(*words: str) -> Outcome:
        capsys.readouterr()
        code = main(words)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
