"""Bounds of requests and of agents' messages: they are checked before the work, and stored in short transactions."""

import json
import time

import pytest
from fastapi.routing import APIRoute
from tests.support.agent_socket import agent_socket
from tests.support.cluster import Cluster
from tests.support.write_holds import MAX_HOLD_SECONDS, write_holds

from determined.link.messages import MAX_SLOTS, Hello, SlotFacts
from determined_master.api.dependencies import write_session
from determined_master.api.schemas.users import MAX_SETTINGS


def settings(count: int) -> dict[str, list[dict[str, str]]]:
    return {"settings": [{"key": f"k{n}", "storagePath": "page", "value": "1"} for n in range(count)]}


async def test_a_hundred_thousand_settings_are_refused_before_anything_is_written(cluster: Cluster):
    with write_holds(cluster.master.database) as holds:
        answer = await cluster.post("/api/v1/users/setting", settings(100_000))
    assert answer.status_code == 400
    assert f"at most {MAX_SETTINGS} entries" in answer.text
    assert holds.seconds == []


async def test_settings_beyond_the_limit_of_a_user_are_refused_and_change_none(cluster: Cluster):
    assert (await cluster.post("/api/v1/users/setting", settings(MAX_SETTINGS))).status_code == 200
    body = {"settings": [{"key": "k1", "storagePath": "page", "value": "2"}, {"key": "more", "storagePath": "page"}]}
    answer = await cluster.post("/api/v1/users/setting", body)
    assert answer.status_code == 400
    assert "at most 1000 settings" in answer.text
    assert {each["value"] for each in (await cluster.get("/api/v1/users/setting"))["settings"]} == {"1"}


async def test_a_setting_that_is_sent_twice_has_its_last_value(cluster: Cluster):
    body = {"settings": [{"key": "k", "storagePath": "p", "value": value} for value in ("1", "2")]}
    assert (await cluster.post("/api/v1/users/setting", body)).status_code == 200
    assert [each["value"] for each in (await cluster.get("/api/v1/users/setting"))["settings"]] == ["2"]


async def test_a_hello_with_too_many_slots_is_refused_with_the_reason(cluster: Cluster):
    text = json.dumps({"kind": "hello", "agent_id": "large", "slots": [{"id": n} for n in range(20_000)]})
    with write_holds(cluster.master.database) as holds:
        async with agent_socket(cluster, text=text) as socket:
            refusal = await socket.answer()
    assert refusal["kind"] == "refuse"
    assert refusal["reason"].startswith(f"invalid hello message: slots: must have at most {MAX_SLOTS} entries")
    assert "\n" not in refusal["reason"]
    assert holds.seconds == []


@pytest.mark.parametrize("count", [1024, MAX_SLOTS])
async def test_many_slots_are_registered_in_a_short_transaction(cluster: Cluster, count: int):
    """The agent registers twice, the second time with all slots changed."""
    for brand in ("old", "new"):
        hello = Hello(agent_id="large", slots=[SlotFacts(id=n, brand=brand) for n in range(count)])
        with write_holds(cluster.master.database) as holds:
            start = time.process_time()
            await cluster.master.agents.welcome(hello)
            seconds = time.process_time() - start
        assert holds.longest <= MAX_HOLD_SECONDS, str(holds)
        assert seconds < 0.5
    slots = (await cluster.get("/api/v1/agents/large/slots"))["slots"]
    assert [slot["device"]["brand"] for slot in slots] == ["new"] * count


def test_no_route_holds_the_write_lock_while_its_body_is_validated(cluster: Cluster):
    """The session of a route opens before its body is validated, and that takes long for a large body."""
    routes = [route for route in cluster.app.routes if isinstance(route, APIRoute)]
    wrong = [
        route.path
        for route in routes
        if route.body_field is not None and any(each.call is write_session for each in route.dependant.dependencies)
    ]
    assert len(routes) > 100
    assert wrong == []
