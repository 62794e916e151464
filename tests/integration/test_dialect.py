"""The dialect of the HTTP API: spellings of names, content types, empty bodies, slashes, errors and pages."""

import pytest
from tests.support.cluster import CONFIG, Cluster


async def test_a_body_without_or_with_a_wrong_content_type_is_json(cluster: Cluster):
    for content_type in ({}, {"Content-Type": "application/x-www-form-urlencoded"}):
        answer = await cluster.client.post(
            "/api/v1/auth/login", content=b'{"username": "admin", "password": "Correct-Horse-7"}', headers=content_type
        )
        assert answer.status_code == 200, answer.text


async def test_camel_case_and_snake_case_names_are_accepted(cluster: Cluster):
    for body in ({"config": CONFIG, "validateOnly": True}, {"config": CONFIG, "validate_only": True}):
        assert (await cluster.post("/api/v1/experiments", body)).status_code == 200
    assert (await cluster.get("/api/v1/experiments"))["experiments"] == []
    await cluster.create()
    for name in ("orderBy", "order_by"):
        listed = await cluster.get("/api/v1/experiments", **{name: "ORDER_BY_DESC"})
        assert len(listed["experiments"]) == 1


async def test_an_empty_body_is_an_empty_object(cluster: Cluster):
    experiment = await cluster.create(activate=False)
    assert (await cluster.client.post(f"/api/v1/experiments/{experiment}/activate")).json() == {}


async def test_an_empty_body_in_two_messages_is_an_empty_object(cluster: Cluster):
    agent = await cluster.join()
    answer = await cluster.client.post(f"/api/v1/agents/{agent.id}/disable", content=b"")
    assert answer.status_code == 200, answer.text


async def test_a_trailing_slash_is_dropped_and_never_redirected(cluster: Cluster):
    assert (await cluster.client.get("/api/v1/me/")).status_code == 200


async def test_keys_inside_metadata_keep_their_spelling(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    task = cluster.as_task(desired.allocation_id)
    odd = {"snake_case": 1, "camelCase": {"in_side": 2}}
    assert (await cluster.post("/api/v1/runs/1/metadata", {"metadata": odd}, **task)).status_code == 200
    assert (await cluster.get("/api/v1/runs/1/metadata"))["metadata"] == odd


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, 5),
        ("GET", "/nothing", 404, 5),
        ("GET", "/oauth2/clients", 404, 5),
        ("GET", "/scim/v2/Users", 404, 5),
        ("GET", "/api/v1/experiments/99", 404, 5),
        ("GET", "/api/v1/experiments/abc", 400, 3),
        ("GET", "/api/v1/trials/99", 404, 5),
        ("POST", "/api/v1/experiments/99/pause", 404, 5),
        ("GET", "/api/v1/experiments?states=STATE_NONSENSE", 400, 3),
        ("GET", "/api/v1/checkpoints/none", 404, 5),
    ],
)
async def test_every_error_body_has_the_same_fields(cluster: Cluster, method: str, path: str, status: int, code: int):
    answer = await cluster.client.request(method, path)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["error"]
    assert set(error) == {"code", "reason", "error"}


async def test_a_body_that_is_no_json_is_a_400(cluster: Cluster):
    for path in ("/api/v1/auth/login", "/api/v1/experiments"):
        assert (await cluster.client.post(path, content=b"{nonsense")).status_code == 400
        assert (await cluster.client.post(path, content=b"[1]")).status_code == 400


async def test_pages_end_where_the_client_expects(cluster: Cluster):
    for _ in range(5):
        await cluster.create(activate=False)
    ids, offset = [], 0
    while True:
        page = await cluster.get("/api/v1/experiments", offset=offset, limit=2)
        ids += [e["id"] for e in page["experiments"]]
        offset = page["pagination"]["endIndex"]
        if offset >= page["pagination"]["total"]:
            break
    assert ids == [1, 2, 3, 4, 5]
    assert (await cluster.get("/api/v1/experiments", limit=-2))["experiments"] == []
    assert [e["id"] for e in (await cluster.get("/api/v1/experiments", offset=-2))["experiments"]] == [4, 5]
