"""Decisions about requests, without a server: writes with a cookie, path prefixes, page addresses, sign-in limits."""

import contextlib
import doctest
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.errors import TooManyRequests, Unauthenticated
from determined_master.api import proxy_prefix
from determined_master.api.rate_limit import MAX_FAILURES, MAX_KEYS, MAX_NAME, RateLimit
from determined_master.web import assets, pages
from determined_master.web.csrf import is_same, refusal

COOKIE = {"cookie": "auth=T", "host": "m:8080"}
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "headers", "allowed"),
    [
        ("POST", {"host": "m"}, True),  # the request carries no session
        ("POST", {"cookie": "other=1", "host": "m"}, True),
        ("POST", COOKIE, False),
        ("POST", COOKIE | {"cookie": "auth_0123abcd=T"}, False),
        ("PUT", COOKIE, False),
        ("PATCH", COOKIE, False),
        ("DELETE", COOKIE, False),
        ("GET", COOKIE, True),
        ("HEAD", COOKIE, True),
        ("POST", COOKIE | {"authorization": "Bearer T"}, True),
        (
            "POST",
            COOKIE | {"authorization": "Basic dXNlcjp4"},
            False,
        ),  # not one of our tokens: the cookie would be used
        ("POST", COOKIE | {"authorization": "Bearer "}, False),
        ("POST", COOKIE | {"sec-fetch-site": "same-origin"}, True),
        ("POST", COOKIE | {"sec-fetch-site": "none"}, True),
        ("POST", COOKIE | {"sec-fetch-site": "same-site"}, False),
        ("POST", COOKIE | {"sec-fetch-site": "cross-site"}, False),
        ("POST", COOKIE | {"origin": "http://m:8080"}, True),
        ("POST", COOKIE | {"origin": "http://m:8081"}, False),
        ("POST", COOKIE | {"origin": "http://evil.example"}, False),
        ("POST", COOKIE | {"origin": "null"}, False),
        ("POST", COOKIE | {"origin": ""}, False),
        ("POST", COOKIE | {"x-detent-page": "1"}, True),
        ("POST", COOKIE | {"x-detent-page": "0"}, False),
        ("POST", COOKIE | {"grpc-metadata-x-allocation-token": "Bearer x"}, False),
        ("BREW", COOKIE, False),
    ],
)
def test_a_cookie_may_write_only_from_the_same_origin(method, headers, allowed):
    assert (refusal(method, headers) is None) == allowed


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://m", "m", True),
        ("http://m", "m:80", True),
        ("https://m", "m:443", True),
        ("https://m:443", "m", True),
        ("http://M", "m", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("http://m.evil.example", "m", False),
        ("http://evil.example", "m@evil.example", False),
        ("http://m@evil.example", "m", False),
        ("http://m:99999", "m", False),
        ("file://", "", False),
        ("", "", False),
    ],
)
def test_an_origin_is_compared_with_host_and_port(origin, host, same):
    assert is_same(origin, host) == same


@pytest.mark.parametrize("module", [proxy_prefix, assets])
def test_the_examples_in_docstrings_are_correct(module):
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed


@given(st.text())
def test_a_prefix_names_a_path_of_this_host_or_nothing(text):
    clean = proxy_prefix.cleaned(text)
    assert clean == "" or (clean.startswith("/") and not clean.startswith("//") and not clean.endswith("/"))
    assert not set(clean) & set("\r\n\"'<>\\ ?#:@%")
    assert ".." not in clean.split("/")


@given(st.text(), st.text())
def test_the_older_addresses_never_lead_to_another_host(path, query):
    where = pages.redirect(f"/det/{path}", query.replace("\n", "").replace("\r", ""), "").headers["location"]
    assert where.startswith("/")
    assert not where.startswith("//")
    assert "\\" not in where


@pytest.mark.parametrize(("source", "base"), [("Experiment.tsx", "/experiments/5"), ("Trial.tsx", "/trials/5")])
def test_a_program_gets_the_page_at_the_address_of_each_tab(source, base):
    text = (Path(__file__).parents[2] / "webui" / "src" / "routes" / source).read_text(encoding="utf-8")
    tabs = re.findall(r'{ to: "([a-z]+)", title', text)
    assert len(tabs) >= 5
    assert [tab for tab in tabs if not pages.is_address(f"{base}/{tab}", is_browser=False)] == []
    for path in (f"{base}/nonsense", f"{base}/logs/all", "/experiments/x", "/projects/1/a", "/workspaces/a"):
        assert pages.is_address(path)
        assert not pages.is_address(path, is_browser=False)


def test_the_page_has_these_addresses():
    addresses = [
        "/",
        "/sign-in",
        "/experiments",
        "/experiments/5/logs",
        "/trials/3",
        "/compare",
        "/cluster/",
        "/settings",
    ]
    assert all(map(pages.is_address, addresses))
    assert all(pages.is_address(each, is_browser=False) for each in addresses)
    assert not any(map(pages.is_address, ["/experimentsx", "/users/1", "/assets", "/api/v1/nothing", "/no-such-path"]))


def fail(limit: RateLimit, address: str, name: str, now: datetime = NOW) -> None:
    with contextlib.suppress(Unauthenticated), limit.sign_in(address, name, now):
        raise Unauthenticated("wrong")


def test_the_rate_limit_refuses_one_name_of_one_address_for_a_minute():
    limit = RateLimit()
    for _ in range(MAX_FAILURES):
        fail(limit, "a", "ann")
    with pytest.raises(TooManyRequests, match="10 failed sign-ins as ann from a in a minute"):
        fail(limit, "a", "ann")
    for address, name, now in (("b", "ann", NOW), ("a", "bob", NOW), ("a", "ann", NOW + timedelta(minutes=1))):
        with limit.sign_in(address, name, now):
            pass


def test_the_rate_limit_counts_a_name_in_any_case_as_one_name():
    limit = RateLimit()
    for number in range(MAX_FAILURES):
        fail(limit, "a", ("zoë", "ZOË", "Zoë")[number % 3])
    with pytest.raises(TooManyRequests):
        fail(limit, "a", "zOË")


def test_the_rate_limit_counts_open_attempts_and_resets_after_a_success():
    limit = RateLimit()
    with contextlib.ExitStack() as open_attempts:
        for _ in range(MAX_FAILURES):
            open_attempts.enter_context(limit.sign_in("a", "ann", NOW))
        with pytest.raises(TooManyRequests):
            fail(limit, "a", "ann")
    for _ in range(MAX_FAILURES):
        fail(limit, "a", "ann")
    with pytest.raises(TooManyRequests):
        fail(limit, "a", "ann")


def test_the_rate_limit_remembers_a_bounded_number_of_keys():
    limit = RateLimit()
    for name in ("ann", "bob"):
        for _ in range(MAX_FAILURES):
            fail(limit, "a", name)
    for number in range(MAX_KEYS - 1):
        fail(limit, "a", f"{number}")
    with pytest.raises(TooManyRequests):
        fail(limit, "a", "bob")
    fail(limit, "a", "ann")


def test_the_rate_limit_remembers_a_bounded_number_of_characters():
    limit = RateLimit()
    for number in range(MAX_FAILURES):
        fail(limit, "a", "x" * MAX_NAME + f"{number}")
    with pytest.raises(TooManyRequests):
        fail(limit, "a", "x" * MAX_NAME + "y")
    fail(limit, "a", "x" * (MAX_NAME - 1) + "y")
