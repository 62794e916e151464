"""``Session`` against a small server: tokens, errors, retries, streams and the reused connection."""

import os
import resource
import subprocess
import sys

import pytest
from tests.support.fake_master import serving

from determined.client.numbers import from_wire, to_wire
from determined.client.session import Retry, Session
from determined.errors import Conflict, DeterminedError, MasterUnreachable, NotFound, PreconditionFailed


@pytest.fixture
def master():
    with serving() as server:
        yield server


def test_a_request_carries_query_body_and_token(master):
    with Session(f"{master.url}/prefix", token="T") as session:
        session.post("/api/v1/a b", {"é": [1]}, query={"x": [1, 2], "none": None, "yes": True})
    _, path, query, body, headers = master.calls[0]
    assert (path, query, body) == ("/prefix/api/v1/a%20b", "x=1&x=2&yes=true", {"é": [1]})
    assert headers["Authorization"] == "Bearer T"


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (404, {"error": {"code": 5, "reason": "NotFound", "error": "no trial 9"}}, NotFound, "no trial 9"),
        (400, {"error": {"code": 9, "reason": "FailedPrecondition", "error": "paused"}}, PreconditionFailed, "paused"),
        (409, {"message": "there"}, Conflict, "there"),
        (418, b"<html>", DeterminedError, "<html>"),
    ],
)
def test_each_error_answer_raises_the_matching_exception(master, status, body, kind, text):
    master.on("GET", "/x", (status, body))
    with Session(master.url) as session, pytest.raises(kind) as failed:
        session.get("/x")
    assert failed.value.message == text
    assert failed.value.status == status


def test_a_get_is_retried_after_a_503_and_a_lost_connection(master):
    answers = iter([(503, {}), (0, None), (200, {"a": 1})])
    master.on("GET", "/x", lambda _: next(answers))
    waits = []
    with Session(master.url, retry=Retry(attempts=3, first_delay=0.5), sleep=waits.append) as session:
        assert session.get("/x") == {"a": 1}
    assert waits == [0.5, 1.0]


@pytest.fixture
def many_open_files():
    """Opens so many files that the next descriptor is above the limit of ``select.select``."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < 1024:
        opened.append(os.dup(opened[0]))
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_connection_is_kept_whose_descriptor_is_above_1024(master, many_open_files):
    master.on("GET", "/x", (200, {"a": 1}))
    with Session(master.url) as session:
        assert [session.get("/x"), session.get("/x")] == [{"a": 1}, {"a": 1}]


def test_a_post_that_was_sent_is_not_retried(master):
    master.on("POST", "/x", (503, {"message": "later"}))
    with Session(master.url, sleep=lambda _: None) as session, pytest.raises(MasterUnreachable, match="later"):
        session.post("/x")
    assert len(master.calls) == 1


def test_a_post_whose_answer_is_lost_is_not_sent_again(master):
    master.on("POST", "/x", (0, None))
    with Session(master.url, sleep=lambda _: None) as session, pytest.raises(MasterUnreachable, match="may have been"):
        session.post("/x")
    assert len(master.calls) == 1


def test_a_post_that_a_full_disk_refused_is_retried(master):
    answers = iter([(503, {"error": {"code": 14, "error": "the disk is full"}}), (200, {"a": 1})])
    master.on("POST", "/x", lambda _: next(answers))
    master.headers["Retry-After"] = "5"
    with Session(master.url, sleep=lambda _: None) as session:
        assert session.post("/x") == {"a": 1}
    assert len(master.calls) == 2


def test_a_refused_connection_is_retried_and_then_raised_as_master_unreachable():
    waits = []
    with Session("http://127.0.0.1:9", retry=Retry(attempts=4), sleep=waits.append) as session:
        with pytest.raises(MasterUnreachable, match=r"127\.0\.0\.1:9 does not answer: connection refused"):
            session.post("/x")
    assert len(waits) == 3


def test_a_stream_yields_results_and_raises_its_error(master):
    lines = (
        b'{"result": {"n": 1}}\n{"result": {"n": 2}}\n{"error": {"httpCode": 404, "grpcCode": 5, "message": "gone"}}\n'
    )
    master.on("GET", "/s", (200, lines))
    with Session(master.url) as session:
        items = session.stream("/s")
        assert [next(items), next(items)] == [{"n": 1}, {"n": 2}]
        with pytest.raises(NotFound, match="gone"):
            next(items)


def test_infinity_and_nan_are_unchanged_by_the_wire_format():
    value = {"a": [float("inf"), -float("inf"), 1.0], "b": {"c": float("nan")}}
    assert str(from_wire(to_wire(value))) == str(value)


@pytest.mark.torch
def test_importing_determined_loads_no_heavy_module():
    code = (
        "import sys, determined; "
        "heavy = {'torch', 'numpy', 'pydantic', 'httpx', 'http.client', 'determined.core', 'determined.pytorch'}; "
        "print(sorted(heavy & set(sys.modules))); "
        "import determined.client.session; print('torch' in sys.modules, 'asyncio' in sys.modules); "
        "import determined as det; det.core.init; print('torch' in sys.modules); det.pytorch.Trainer; "
        "print('pydantic' in sys.modules, 'httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180, check=True)
    assert done.stdout.split("\n")[:4] == ["[]", "False False", "False", "False False"]
