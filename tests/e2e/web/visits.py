"""A person's browser on a cluster's page, and checks of errors and foreign requests."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, Request, expect
from tests.support.live_cluster import LiveCluster, log_in

CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
"""Both are the same version of Blink and V8. Without the parts for a screen, a page takes a third of the CPU time."""
SECONDS = 60
"""Maximum time of the page on a busy machine. It usually takes much less."""
WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 390, "height": 844}

expect.set_options(timeout=SECONDS * 1000)


def launch(playwright: Playwright) -> Browser:
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"]
    arguments += ["--disable-software-rasterizer"]  # no page uses WebGL
    return playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)


class Visit:
    """One browser context. It records the errors of its pages and their requests to other origins."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url
        self.context: BrowserContext = browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce"} | options)
        self.context.set_default_timeout(SECONDS * 1000)
        self.thrown: list[str] = []
        self.console_errors: list[str] = []
        self.foreign: list[str] = []
        self.context.on(
            "weberror", lambda error: self.thrown.append(f"{error.page.url if error.page else None}: {error.error}")
        )
        self.context.on("console", self._on_console)
        self.context.on("request", self._on_request)

    def page(self, path: str = "/") -> Page:
        page = self.context.new_page()
        page.goto(self.url + path)
        return page

    def sign_in(self, username: str, password: str) -> None:
        """Signs in with the request of the form."""
        body = {"username": username, "password": password}
        answer = self.context.request.post(f"{self.url}/detent/sign-in", data=body, headers={"X-Detent-Page": "1"})
        assert answer.ok, answer.text()
        stored = json.dumps(["detent.sign-in", answer.json()["sessionId"]])
        self.context.add_init_script(f"location.protocol === 'about:' || localStorage.setItem(...{stored})")

    def faultless(self) -> None:
        """Checks that no error was raised and no request went to another origin."""
        assert self.thrown == [], self.thrown
        assert self.foreign == [], self.foreign

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console_errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme not in ("data", "blob") and not request.url.startswith(f"{self.url}/"):
            self.foreign.append(request.url)


@contextlib.contextmanager
def visit(browser: Browser, cluster: LiveCluster, username: str = "admin", **options: Any) -> Iterator[Visit]:
    """Yields a signed-in visit, which must be faultless at its end."""
    created = Visit(browser, cluster.url, **options)
    try:
        created.sign_in(username, password_of(cluster))
        yield created
        created.faultless()
    finally:
        for page in created.context.pages:
            page.unroute_all(behavior="ignoreErrors")  # else a handler that still runs fails the next test
        created.context.close()


def password_of(cluster: LiveCluster) -> str:
    """Returns the password of both initial users of a cluster."""
    return (cluster.data / "password").read_text().strip()


def link_for(cluster: LiveCluster, username: str = "admin") -> str:
    """Returns an address that signs in once."""
    with log_in(cluster.url, cluster.data, username) as session:
        return cluster.url + str(session.post("/detent/sign-in/links", {})["path"])
