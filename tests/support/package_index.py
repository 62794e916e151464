"""A package index on this machine that serves the wheels of a folder to pip, uv and pipenv."""

import contextlib
import functools
import hashlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.packages import make_wheel


@dataclass
class PackageIndex:
    """Serves the wheels of ``folder``. ``asked`` counts the requests for each file."""

    url: str
    folder: Path
    asked: dict[str, int] = field(default_factory=dict)
    gate: threading.Event = field(default_factory=threading.Event)
    """Requests for files wait until it is set."""

    is_asked: threading.Event = field(default_factory=threading.Event)
    """Set after the first request for a file."""

    @property
    def variables(self) -> list[str]:
        """Returns ``NAME=VALUE`` variables for tasks that make all installers use only this index."""
        return [f"PIP_INDEX_URL={self.url}", f"UV_DEFAULT_INDEX={self.url}", f"PIPENV_PYPI_MIRROR={self.url}"]

    def add(self, name: str, *versions: str) -> None:
        """Adds versions of a package whose only module has a ``version``."""
        for version in versions:
            make_wheel(self.folder, name, version)

    def file_of(self, name: str, version: str) -> tuple[str, str]:
        """Returns the address of a wheel and its sha256."""
        wheel = self.folder / f"{name}-{version}-py3-none-any.whl"
        return f"{self.url.removesuffix('/simple')}/files/{wheel.name}", _hash(wheel)


@contextlib.contextmanager
def package_index(folder: Path) -> Iterator[PackageIndex]:
    """Serves the wheels of ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        index = PackageIndex(f"http://127.0.0.1:{server.server_address[1]}/simple", folder)
        index.gate.set()
        server.RequestHandlerClass = functools.partial(_Handler, index)  # type: ignore[assignment]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield index
        finally:
            index.gate.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, index: PackageIndex, *more: object) -> None:
        self._index = index
        super().__init__(*more)  # type: ignore[arg-type]

    def do_GET(self) -> None:  # name of the base class
        simple = re.fullmatch(r"/simple/([^/]+)/?", self.path)
        wheel = self._index.folder / Path(self.path).name
        if simple is not None:
            wheels = sorted(self._index.folder.glob(f"{simple[1].replace('-', '_')}-*.whl"))
            body = "".join(f'<a href="/files/{each.name}#sha256={_hash(each)}">{each.name}</a>\n' for each in wheels)
            self._answer(200 if wheels else 404, body.encode(), "text/html")
        elif self.path.startswith("/files/") and wheel.is_file():
            self._index.asked[wheel.name] = self._index.asked.get(wheel.name, 0) + 1
            self._index.is_asked.set()
            self._index.gate.wait(120)
            self._answer(200, wheel.read_bytes(), "application/octet-stream")
        else:
            self._answer(404, b"", "text/plain")

    def do_HEAD(self) -> None:  # name of the base class
        """Answers uv's request for partial content support, which is not offered."""
        wheel = self._index.folder / Path(self.path).name
        self._answer(200 if wheel.is_file() else 404, wheel.read_bytes() if wheel.is_file() else b"", "text/plain")

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""

    def _answer(self, code: int, body: bytes, kind: str) -> None:
        with contextlib.suppress(OSError):
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
