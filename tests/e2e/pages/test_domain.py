"""Origins that are subdomains: the header ``Host`` chooses, at the master's own port."""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright
from tests.e2e.pages.conftest import NAVIGATION, Serving
from tests.e2e.streams.conftest import StreamCluster
from tests.e2e.web.visits import Visit, launch, password_of
from tests.support.free_ports import free_port
from tests.support.task_server import SERVER

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages below a domain")]


@pytest.fixture(scope="module")
def below_localhost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("domain")
    cluster = StreamCluster(folder / "cluster", proxy_domain="localhost")
    try:
        cluster.start_master()
        cluster.start_agent(slots=1)
        yield Serving(cluster, cluster.begin(folder / "trial", SERVER, ports=[free_port()]))
    finally:
        cluster.free_slots()
        cluster.close()


def test_a_subdomain_serves_its_task_and_nothing_of_the_cluster(below_localhost: Serving):
    cluster = below_localhost.cluster
    url = httpx.URL(below_localhost.ticket(path="/api/v1/me"))
    assert url.host.endswith(".localhost")
    assert url.port == cluster.port
    host = {"host": url.netloc.decode()}
    with httpx.Client(base_url=cluster.url, timeout=60, trust_env=False, headers=host) as visitor:
        token = {"authorization": str(cluster.session.headers["Authorization"])}
        assert visitor.get("/api/v1/me", headers=token).status_code == 401
        entered = visitor.get(url.raw_path.decode())
        cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
        assert visitor.get("/api/v1/me", headers=cookie).text == "/api/v1/me"
        assert "clear-site-data" not in entered.headers
    unknown = httpx.get(cluster.url, headers={"host": f"80-{'0' * 16}.localhost:{cluster.port}", **NAVIGATION})
    assert unknown.status_code == 404
    assert "Nothing is open here" in unknown.text
    assert httpx.get(f"{cluster.url}/health", headers={"host": f"cluster.localhost:{cluster.port}"}).status_code == 200
    assert httpx.get(f"{cluster.url}/health").status_code == 200


def test_a_browser_is_led_to_the_subdomain_of_a_task(below_localhost: Serving):
    cluster = below_localhost.cluster
    with sync_playwright() as playwright:
        browser = launch(playwright)
        visitor = Visit(browser, cluster.url)
        visitor.sign_in("admin", password_of(cluster))
        page = visitor.page("/experiments")
        address = f"/detent/tasks/{below_localhost.task_id}/enter?port={below_localhost.ports[0]}&path=/page"
        page.evaluate("address => { location.href = address }", address)
        expect(page.get_by_role("heading", name="A page of a task")).to_be_visible()
        assert ".localhost:" in page.url
        assert page.url.endswith("/page")
        visitor.context.close()
        browser.close()


def test_the_page_of_a_trial_leads_to_its_declared_ports(below_localhost: Serving):
    cluster, trial = below_localhost.cluster, below_localhost.experiment
    with sync_playwright() as playwright:
        browser = launch(playwright)
        visitor = Visit(browser, cluster.url)
        visitor.sign_in("admin", password_of(cluster))
        page = visitor.page(f"/trials/{trial.trial_id}/curves")
        with page.expect_popup() as opening:
            page.get_by_role("link", name=re.compile("Open port [0-9]+")).click()
        opened = opening.value
        opened.wait_for_url(re.compile(r"^http://[0-9]+-[0-9a-f]+\.localhost:"))
        assert opened.evaluate("window.opener") is None
        visitor.context.close()
        browser.close()
