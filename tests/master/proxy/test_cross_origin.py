"""Requests of other origins to the origin of a task."""

import pytest

from determined_master.proxy.cross_origin import is_navigation, refusal

HOST = {"host": "localhost:8100"}


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}),
        ("POST", {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}),
        ("GET", {"origin": "http://localhost:8101"}),
        ("POST", {"origin": "null"}),
        ("POST", {"origin": "http://localhost:8101", "sec-fetch-site": "same-origin"}),
    ],
)
def test_another_origins_requests_are_refused(method: str, headers: dict[str, str]):
    assert refusal(method, HOST | headers)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {}),
        ("POST", {"origin": "http://localhost:8100"}),
        ("POST", {"sec-fetch-site": "same-origin"}),
        ("GET", {"sec-fetch-site": "none"}),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}),
    ],
)
def test_the_pages_own_requests_and_links_to_it_are_not(method: str, headers: dict[str, str]):
    assert refusal(method, HOST | headers) is None


@pytest.mark.parametrize(("origin", "is_refused"), [("http://localhost:8100", False), ("http://localhost:8101", True)])
def test_a_websocket_needs_the_origins_own_name(origin: str, is_refused: bool):
    assert bool(refusal("GET", HOST | {"origin": origin}, is_websocket=True)) == is_refused


def test_an_address_that_a_program_reads_is_no_navigation():
    assert not is_navigation("GET", {"accept": "*/*"})
    assert is_navigation("GET", {"accept": "text/html,*/*"})
