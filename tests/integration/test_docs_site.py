"""The documentation under ``/docs``: its files, its policy, and a site that is not built."""

import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.cluster import Cluster, open_cluster

SCRIPT = "document.body.dataset.theme = 'auto';"


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    """Yields a master with a site of two pages in ``tmp_path / "site"``."""
    site = tmp_path / "site"
    (site / "how-to").mkdir(parents=True)
    (site / "index.html").write_text(f"<h1>Start</h1><script>{SCRIPT}</script><script src='a.js'></script>")
    (site / "how-to" / "index.html").write_text("<h1>How</h1>")
    (site / "a.js").write_text("1")
    (tmp_path / "secret.txt").write_text("secret")
    (site / "link.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr("determined_master.server.app.docs_folder", lambda: site)
    (tmp_path / "data").mkdir()
    async with open_cluster(tmp_path, data=tmp_path / "data") as cluster:
        cluster.client.headers.pop("Authorization", None)
        yield cluster


async def test_pages_and_files_need_no_sign_in(served: Cluster):
    start = await served.client.get("/docs/")
    assert start.status_code == 200
    assert "Start" in start.text
    assert (await served.client.get("/docs/a.js")).headers["content-type"].startswith("text/javascript")
    assert "How" in (await served.client.get("/docs/how-to/index.html")).text
    assert (await served.client.head("/docs/a.js")).status_code == 200


async def test_docs_without_a_slash_redirects_to_a_relative_path(served: Cluster):
    for path, location in (("/docs", "./docs/"), ("/docs/how-to", "./how-to/")):
        answer = await served.client.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, location)


async def test_only_the_scripts_of_the_page_itself_may_run(served: Cluster):
    policy = (await served.client.get("/docs/")).headers["content-security-policy"]
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert (
        "script-src 'self';" in (await served.client.get("/docs/how-to/index.html")).headers["content-security-policy"]
    )


@pytest.mark.parametrize(
    "path", ["/docs/none.html", "/docs/..%2fsecret.txt", "/docs/link.txt", "/docs/how-to%2f..%2f.."]
)
async def test_nothing_outside_of_the_site_is_served(served: Cluster, path: str):
    answer = await served.client.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace("secret.txt", "")


async def test_a_site_that_is_not_built_says_how_to_build_it(served: Cluster, tmp_path: Path):
    (tmp_path / "site").rename(tmp_path / "away")
    answer = await served.client.get("/docs/")
    assert (answer.status_code, "make docs" in answer.text) == (404, True)
    (tmp_path / "away").rename(tmp_path / "site")
    assert (await served.client.get("/docs/")).status_code == 200
