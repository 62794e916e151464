"""The web page over HTTP: its addresses, headers, encodings and prefixes, and paths that are refused."""

import io
import os
import re
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.cluster import PASSWORD, Cluster, open_cluster
from tests.support.seeded_cluster import FILE

INDEX = '<html><head><base href="%BASE%"><meta name="detent-build" content="%BUILD%"><style nonce="%NONCE%"></style>'


@pytest.fixture
async def paged(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Yields a master with a small web page."""
    dist = tmp_path / "dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "index.html").write_text(INDEX)
    (dist / "mark.svg").write_text("<svg/>")
    (dist / "assets" / "app-1.js").write_text("plain()")
    (dist / "assets" / "app-1.js.gz").write_bytes(b"gzipped")
    (dist / "assets" / "app-1.js.br").write_bytes(b"brotlied")
    (tmp_path / "secret.txt").write_text("secret")
    (dist / "assets" / "link.js").symlink_to(tmp_path / "secret.txt")
    async with open_cluster(tmp_path, webui=dist, data=_data(tmp_path)) as cluster:
        yield cluster


def _data(folder: Path) -> Path:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    return data


async def test_every_address_of_the_page_returns_its_document(paged: Cluster):
    build = paged.app.state.page_files.page.build
    nonces = set()
    for address in ("/", "/sign-in", "/experiments/7/overview", "/trials/1", "/compare", "/checkpoints", "/users"):
        answer = await paged.client.get(address, headers={"Authorization": ""})
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        nonce = re.search(r'nonce="([^"]+)"', answer.text)
        assert nonce is not None
        assert f"'nonce-{nonce[1]}'" in answer.headers["content-security-policy"]
        assert '<base href="/">' in answer.text
        assert f'content="{build}"' in answer.text
        assert "%" not in answer.text
        nonces.add(nonce[1])
    assert len(nonces) == 7


async def test_the_page_of_the_api_lists_every_operation_and_loads_nothing(cluster: Cluster):
    answer = await cluster.client.get("/detent/docs", headers={"Authorization": ""})
    assert answer.status_code == 200
    document = (await cluster.client.get("/detent/openapi.json")).json()
    assert [path for path in document["paths"] if f"<code>{path}</code>" not in answer.text] == []
    assert re.findall(r"<(script|link|img|iframe)\b|//[a-z]", answer.text) == []
    nonce = re.search(r'<style nonce="([^"]+)"', answer.text)
    assert nonce is not None
    assert f"'nonce-{nonce[1]}'" in answer.headers["content-security-policy"]


async def test_every_answer_has_security_headers(paged: Cluster):
    for path in ("/", "/assets/app-1.js", "/mark.svg", "/det/experiments"):
        headers = (await paged.client.get(path, headers={"Accept-Encoding": "identity"})).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "frame-ancestors 'none'" in policy
        assert headers["referrer-policy"] == "no-referrer"
    for path in ("/", "/assets/app-1.js", "/api/v1/me", "/no/such/path", "/info"):
        answer = await paged.client.get(path, headers={"Accept-Encoding": "identity"})
        assert answer.headers["x-content-type-options"] == "nosniff"
    metrics = await paged.post("/api/v1/trials/1/metrics", {})
    assert metrics.headers.get_list("x-content-type-options") == ["nosniff"]


@pytest.mark.parametrize(
    ("accept", "encoding", "content"),
    [
        ("br, gzip", "br", b"brotlied"),
        ("gzip", "gzip", b"gzipped"),
        ("br;q=0, gzip;q=0.1", "gzip", b"gzipped"),
        ("identity", None, b"plain()"),
        ("", None, b"plain()"),
    ],
)
async def test_a_file_is_sent_in_an_encoding_that_the_browser_accepts(
    paged: Cluster, accept: str, encoding: str | None, content: bytes
):
    request = paged.client.build_request("GET", "/assets/app-1.js", headers={"Accept-Encoding": accept})
    answer = await paged.client.send(request, stream=True)
    raw = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert raw == content
    assert answer.headers.get("content-encoding") == encoding
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "accept-encoding"


async def test_a_file_without_a_hash_in_its_name_is_revalidated(paged: Cluster):
    answer = await paged.client.get("/mark.svg")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-type"] == "image/svg+xml"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/..\\..\\secret.txt",
        "/assets//etc/passwd",
        "/assets/link.js",
        "/assets/app-1.js.br",
        "/assets/",
        "/assets",
        "/index.html%00.js",
        "/../data/password",
    ],
)
async def test_a_path_outside_of_the_page_answers_404(paged: Cluster, path: str):
    answer = await paged.client.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    "path",
    ["/experiments/1/nonsense", "/experiments/x", "/trials/1/checkpoints/2", "/projects/1/experiments", "/nothing"],
)
@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
async def test_an_unknown_address_answers_404_in_json_to_programs(paged: Cluster, path: str, accept: str):
    answer = await paged.client.get(path, headers={"Accept": accept})
    assert answer.status_code == 404
    assert answer.json()["error"]["error"] == "no such path"
    assert (
        (await paged.client.get(path, headers={"Accept": "text/html"})).headers["content-type"].startswith("text/html")
    )


async def test_the_archive_of_a_model_definition_is_served_beside_the_page(paged: Cluster):
    experiment = await paged.create(modelDefinition=[FILE])
    empty = await paged.create()
    for accept in ("*/*", "text/html"):
        answer = await paged.client.get(f"/experiments/{experiment}/model_def", headers={"Accept": accept})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/gzip"
        with tarfile.open(fileobj=io.BytesIO(answer.content), mode="r:gz") as archive:
            assert [member.name for member in archive] == ["run.py"]
    assert (await paged.client.get(f"/experiments/{empty}/model_def")).status_code == 404
    nobody = await paged.client.get(f"/experiments/{experiment}/model_def", headers={"Authorization": ""})
    assert nobody.status_code == 401


@pytest.mark.parametrize("path", ["/experimentz", "/no/such/page", "/index.htm", "/.git/config"])
async def test_an_unknown_address_answers_404_with_the_page_to_browsers(paged: Cluster, path: str):
    answer = await paged.client.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<base href="/">' in answer.text
    assert "error" in (await paged.client.get(path)).json()


@pytest.mark.parametrize("path", ["/api/v1/no-such", "/detent/no-such", "/assets/app-2.js"])
async def test_an_unknown_path_of_the_api_or_the_assets_never_returns_the_page(paged: Cluster, path: str):
    answer = await paged.client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "error" in answer.json()


@pytest.mark.parametrize("prefix", ["/cluster", "/a/b-c_d.e", "/cluster/"])
async def test_links_and_redirects_carry_the_prefix_of_a_proxy(paged: Cluster, prefix: str):
    headers = {"X-Forwarded-Prefix": prefix}
    clean = prefix.rstrip("/")
    assert f'<base href="{clean}/">' in (await paged.client.get("/experiments/1", headers=headers)).text
    moved = await paged.client.get("/det/experiments/1?tab=logs", headers=headers)
    assert moved.headers["location"] == f"{clean}/experiments/1?tab=logs"


@pytest.mark.parametrize(
    "prefix",
    [
        '/"><script>alert(1)</script>',
        "//evil.example",
        "/a/../..",
        "https://evil.example",
        "/a\tb",
        "/a?b",
        "x",
        "/a%0d",
    ],
)
async def test_an_invalid_prefix_is_ignored(paged: Cluster, prefix: str):
    answer = await paged.client.get("/", headers={"X-Forwarded-Prefix": prefix})
    assert '<base href="/">' in answer.text
    moved = await paged.client.get("/det/cluster", headers={"X-Forwarded-Prefix": prefix})
    assert moved.headers["location"] == "/cluster"
    signed = await paged.post(
        "/detent/sign-in", {"username": "admin", "password": PASSWORD}, **{"X-Forwarded-Prefix": prefix}
    )
    assert "; Path=/;" in signed.headers["set-cookie"]


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/det/experiments/5", "/experiments/5"),
        ("/det", "/"),
        ("/det/", "/"),
        ("/det//evil.example", "/evil.example"),
        ("/det/\\evil.example", "/evil.example"),
        ("/det/a b", "/a%20b"),
    ],
)
async def test_addresses_of_determined_redirect_to_the_page(paged: Cluster, path: str, to: str):
    answer = await paged.client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (307, to)


async def test_a_new_build_of_the_page_is_served_at_once(paged: Cluster):
    index = paged.master.settings.webui / "index.html"  # type: ignore[operator]
    before = (await paged.client.get("/detent/session")).json()["build"]
    index.write_text(INDEX + "<body>")
    os.utime(index, (1, 1))
    after = (await paged.client.get("/detent/session")).json()["build"]
    assert before != after
    assert after in (await paged.client.get("/")).text


async def test_without_a_built_page_the_answer_says_how_to_build_it(tmp_path: Path):
    async with open_cluster(tmp_path, webui=tmp_path / "none") as cluster:
        answer = await cluster.client.get("/experiments")
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/plain")
        assert "make webui" in answer.text
        assert (await cluster.client.get("/detent/session")).json()["build"] == ""
        assert (await cluster.client.get("/api/v1/me")).status_code == 200


async def test_paths_with_the_configured_base_path_are_served(tmp_path: Path):
    async with open_cluster(tmp_path, base_path="/cluster") as cluster:
        assert (await cluster.client.get("/cluster/api/v1/me")).status_code == 200
        assert (await cluster.client.get("/api/v1/me")).status_code == 200
        assert (await cluster.client.get("/clusters/api/v1/me")).status_code == 404
        signed = await cluster.post("/detent/sign-in", {"username": "admin", "password": PASSWORD})
        assert "; Path=/cluster;" in signed.headers["set-cookie"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/experiments/1/kill"),
        ("DELETE", "/api/v1/experiments/1"),
        ("PATCH", "/api/v1/users/1"),
        ("PUT", "/api/v1/experiments/1/labels/x"),
        ("POST", "/api/v1/trials/1/metrics"),
        ("POST", "/api/v1/task/logs"),
        ("POST", "/detent/agents/one/output"),
        ("POST", "/detent/sign-out"),
    ],
)
async def test_a_write_from_a_page_of_another_site_is_refused(paged: Cluster, method: str, path: str):
    token = paged.client.headers.pop("Authorization").removeprefix("Bearer ")
    headers = {"Cookie": f"auth={token}", "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    answer = await paged.client.request(method, path, json={}, headers=headers)
    assert answer.status_code == 403
    assert "own web page" in answer.json()["error"]["error"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await paged.client.get("/api/v1/me", headers=headers)).status_code == 200
    own = {"Cookie": f"auth={token}", "Sec-Fetch-Site": "same-origin"}
    assert (await paged.client.request(method, path, json={}, headers=own)).status_code != 403
