"""The sign-in link to the web page: it is printed always and opened in a browser only on a desktop."""

import webbrowser
from typing import Any

import pytest

from determined_cli.terminal import browser

from .conftest import Det, FakeMaster


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "darwin", True),
    ],
)
def test_a_desktop_is_recognized_by_its_environment(environ: dict[str, str], platform: str, expected: bool) -> None:
    assert browser.has_desktop(environ, platform) is expected


def test_an_error_of_the_browser_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def fail(url: str) -> bool:
        opened.append(url)
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "open_new_tab", fail)
    browser.show("http://m/sign-in#T")
    assert opened == ["http://m/sign-in#T"]


def test_master_open_without_a_terminal_prints_a_link_and_opens_no_browser(
    fake: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(webbrowser, "open_new_tab", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    fake.answers["POST /detent/sign-in/links"] = {"path": "/sign-in#T", "expiresAt": "2030-01-01T00:00:00Z"}
    done = det("master", "open")
    assert (done.code, done.out) == (0, f"{fake.url}/sign-in#T\n")
    assert fake.requests_to("POST /detent/sign-in/links")[0].json == {}
    assert opened == []
