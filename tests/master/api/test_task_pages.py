"""Pages of tasks: the entrance at the cluster, and answers in place of a task's."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock
from urllib.parse import parse_qs, unquote

import httpx
import pytest

from determined.errors import BadRequest
from determined_master.api.detent.task_pages import checked_path
from determined_master.api.proxy.cluster_proxy import ClusterProxy
from determined_master.api.proxy.origin_app import OriginApp
from determined_master.api.proxy.plain_pages import plain_page
from determined_master.errors import StorageUnavailable
from determined_master.proxy.visits import MAX_PATH_CHARACTERS


def origin_app(find: AsyncMock) -> httpx.AsyncClient:
    """Returns a client of an origin whose visits are found by ``find``."""
    opened = SimpleNamespace(task_id="1.a", port=8888, cluster="http://cluster")
    origin = SimpleNamespace(service=SimpleNamespace(label="a-8888"), opened=opened)
    origins = Mock(has_ports=True, at_port=lambda _port: origin)
    pages: Any = SimpleNamespace(origins=origins, visits=SimpleNamespace(find=find))
    return httpx.AsyncClient(transport=httpx.ASGITransport(OriginApp(pages)), base_url="http://cluster:9000")


@pytest.mark.parametrize("path", ["//[", "/\t/[", "//host", "/\\host", "http://host/", "page"])
def test_a_path_that_is_none_of_the_origin_is_refused(path: str):
    with pytest.raises(BadRequest, match="begins with one slash"):
        checked_path(path)


def test_a_page_with_a_button_lets_the_browser_say_where_its_form_comes_from():
    assert plain_page("text/html", 200, "Open", "", button="Open").headers["referrer-policy"] == "same-origin"
    assert plain_page("text/html", 200, "Open", "").headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("size", [MAX_PATH_CHARACTERS, MAX_PATH_CHARACTERS + 1])
async def test_an_address_that_is_too_long_for_the_entrance_leads_to_the_first_page(size: int):
    headers = {"accept": "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    async with origin_app(AsyncMock(return_value=None)) as client:
        answer = await client.get("/" + "x" * (size - 1), headers=headers)
    path = httpx.URL(answer.headers["location"]).params["path"]
    assert path == ("/" if size > MAX_PATH_CHARACTERS else "/" + "x" * (size - 1))


async def test_a_visitor_is_told_that_the_database_is_away():
    async with origin_app(AsyncMock(side_effect=StorageUnavailable(StorageUnavailable.AWAY))) as client:
        answer = await client.get("/", headers={"accept": "text/html"})
    assert answer.status_code == 503
    assert StorageUnavailable.AWAY in answer.text


@pytest.mark.parametrize("prefix", ["", "/lab", "/proxy/lab", "/a/proxy/b"])
async def test_a_task_gets_its_own_address_whatever_the_prefix_of_a_proxy_holds(prefix: str):
    proxy: Any = ClusterProxy(Mock(), Mock(), Mock())
    own = "/proxy/1.a:8888/x%20y/proxy/z"
    headers = [(b"accept", b"text/html"), (b"sec-fetch-mode", b"navigate"), (b"sec-fetch-dest", b"document")]
    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(own),
        "raw_path": f"{prefix}{own}".encode(),
        "query_string": b"q=1",
        "headers": headers,
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await proxy.handle(scope, AsyncMock(), send)
    location = dict(sent[0]["headers"])[b"location"].decode()
    assert parse_qs(location.partition("?")[2])["path"] == [f"{own}?q=1"]
    assert location.startswith("../../../../detent/tasks/1.a/")
