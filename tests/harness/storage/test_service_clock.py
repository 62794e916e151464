"""The error about a store that refuses requests because of this machine's clock."""

import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from determined.errors import StorageError
from determined.storage.bucket import BucketStorage
from determined.storage.service_clock import clock_difference

NOW = 1_900_000_000.0
BODY = (
    b"<Error><Code>RequestTimeTooSkewed</Code>"
    b"<Message>The difference between the request time and the current time is too large.</Message></Error>"
)


class _Skewed(BaseHTTPRequestHandler):
    """An S3 service whose clock is three hours ahead."""

    protocol_version = "HTTP/1.1"  # supports clients that expect 100-continue

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response_only(403)
        self.send_header("Date", formatdate(time.time() + 3 * 3600, usegmt=True))
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Skewed)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_probe_of_a_bucket_names_the_difference_of_the_clocks(endpoint: str) -> None:
    keys = {"access_key": "a", "secret_key": "b"}
    storage = BucketStorage({"type": "s3", "bucket": "lab", "endpoint_url": endpoint, **keys})
    with pytest.raises(StorageError) as failed:
        storage.probe()
    expected = (
        "cannot write to checkpoint storage s3://lab: the clock of this machine is 3 h 0 min behind the store's; set it"
    )
    assert failed.value.message.startswith(expected)
    assert "The difference between the request time and the current time is too large" in failed.value.message


def refusal_with_date(date: object) -> Exception:
    error = PermissionError("refused")
    cause: Any = RuntimeError("as of a library")
    cause.response = {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (1200, "the clock of this machine is 20 min behind the store's; set it"),
        (-7260, "the clock of this machine is 2 h 1 min ahead of the store's; set it"),
        (200, ""),
        (-200, ""),
    ],
)
def test_only_a_clock_difference_of_many_minutes_is_named(ahead: int, expected: str) -> None:
    assert clock_difference(refusal_with_date(formatdate(NOW + ahead, usegmt=True)), NOW) == expected


@pytest.mark.parametrize("date", [None, "", "yesterday"])
def test_an_answer_without_a_date_gives_no_clock_difference(date: object) -> None:
    assert clock_difference(refusal_with_date(date), NOW) == ""
    assert clock_difference(OSError("no answer"), NOW) == ""


def test_the_date_of_an_azure_answer_is_read() -> None:
    error: Any = RuntimeError("refused")
    error.response = SimpleNamespace(headers={"Date": formatdate(NOW + 3600, usegmt=True)})
    assert "1 h 0 min behind" in clock_difference(error, NOW)
