"""Compression of a whole master's answers: lists are compressed, streams and sign-ins are not."""

import json

import httpx
from tests.support.cluster import PASSWORD, Cluster
from tests.support.event_reader import reading
from tests.support.fake_link_master import serving

GZIP = {"Accept-Encoding": "gzip, deflate"}


async def test_a_list_is_compressed_and_has_the_same_content(cluster: Cluster):
    for _ in range(3):
        await cluster.create(activate=False)
    packed = await cluster.client.get("/api/v1/experiments", headers=GZIP)
    plain = await cluster.client.get("/api/v1/experiments", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json() == plain.json()
    assert int(packed.headers["content-length"]) * 2 < len(plain.content)


async def test_the_list_of_the_page_is_compressed(cluster: Cluster):
    for _ in range(5):
        await cluster.create(activate=False)
    answer = await cluster.client.post("/detent/experiments/search", json={"limit": 50}, headers=GZIP)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.json()["total"] == 5


async def test_answers_with_a_token_are_not_compressed(cluster: Cluster):
    for path in ("/api/v1/auth/login", "/detent/sign-in"):
        answer = await cluster.client.post(path, json={"username": "admin", "password": PASSWORD}, headers=GZIP)
        assert "content-encoding" not in answer.headers, path


async def test_a_refusal_that_repeats_the_request_is_not_compressed(cluster: Cluster):
    filter_ = {"filterGroup": {"kind": "group", "conjunction": "and", "children": []}}
    filter_["filterGroup"]["children"] = [  # type: ignore[index]  # a dictionary
        {"kind": "field", "columnName": f"x{'y' * 900}", "operator": "=", "value": 1}
    ]
    answer = await cluster.client.post("/detent/experiments/search", json={"filter": json.dumps(filter_)}, headers=GZIP)
    assert answer.status_code == 400
    assert "content-encoding" not in answer.headers


async def test_changes_reach_a_browser_that_takes_gzip_one_by_one(cluster: Cluster):
    async with serving(cluster.app) as url:
        token = cluster.client.headers["Authorization"].removeprefix("Bearer ")
        async with reading(url, token, **GZIP) as stream:
            assert "content-encoding" not in stream.headers
            await stream.until("hello")
            await stream.change("experiment", await cluster.create())


async def test_a_followed_stream_of_json_lines_is_not_compressed(cluster: Cluster):
    await cluster.create(activate=False)
    experiment = (await cluster.get("/api/v1/experiments"))["experiments"][0]["id"]
    async with serving(cluster.app) as url:
        headers = {"Authorization": cluster.client.headers["Authorization"], **GZIP}
        path = f"{url}/api/v1/experiments/metrics-stream/metric-names?ids={experiment}&periodSeconds=30"
        async with httpx.AsyncClient(headers=headers, timeout=10) as client, client.stream("GET", path) as answer:
            assert "content-encoding" not in answer.headers
            first = await anext(answer.aiter_lines())
            assert "result" in json.loads(first)
