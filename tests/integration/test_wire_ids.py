"""Ids as scripts for Determined expect them: of slots, in sentences of 404, and offsets of pages."""

import pytest
from tests.support.cluster import Cluster
from tests.support.makers import add_experiment

from determined.link.messages import Hello, SlotFacts

UNKNOWN = "00000000-0000-4000-8000-00000000ffff"


async def test_slots_are_numbers_and_have_keys_of_their_agent(cluster: Cluster):
    slots = [SlotFacts(id=i) for i in range(11)]
    await cluster.master.agents.welcome(Hello(agent_id="box", pool="default", hostname="box.lab", slots=slots))
    agent = (await cluster.get("/api/v1/agents/box"))["agent"]
    assert list(agent["slots"]) == [f"/agents/box/slots/{i}" for i in range(11)]
    assert [slot["id"] for slot in agent["slots"].values()] == [str(i) for i in range(11)]
    assert agent["addresses"] == ["box.lab"]
    listed = (await cluster.get("/api/v1/agents/box/slots"))["slots"]
    assert listed == list(agent["slots"].values())
    for name in ("7", "007"):  # as earlier versions named it
        assert (await cluster.get(f"/api/v1/agents/box/slots/{name}"))["slot"]["id"] == "7"
        answer = await cluster.post(f"/api/v1/agents/box/slots/{name}/disable", {})
        assert (answer.json()["slot"]["id"], answer.json()["slot"]["enabled"]) == ("7", False)


@pytest.mark.parametrize(
    ("method", "path", "sentence"),
    [
        ("GET", "/api/v1/experiments/7", "experiment '7' not found"),
        ("GET", "/api/v1/experiments/7/trials", "experiment '7' not found"),
        ("GET", "/api/v1/trials/7", "trial '7' not found"),
        ("GET", "/api/v1/trials/7/logs", "trial '7' not found"),
        ("GET", f"/api/v1/checkpoints/{UNKNOWN}", f"checkpoint '{UNKNOWN}' not found"),
        ("GET", "/api/v1/checkpoints/nonsense", "checkpoint 'nonsense' not found"),
        ("GET", f"/api/v1/commands/{UNKNOWN}", f"command '{UNKNOWN}' not found"),
        ("POST", f"/api/v1/commands/{UNKNOWN}/kill", f"command '{UNKNOWN}' not found"),
        ("GET", "/api/v1/tasks/7.x", "task '7.x' not found"),
        ("GET", "/api/v1/agents/none", "agent 'none' not found"),
        ("POST", "/api/v1/agents/none/disable", "agent 'none' not found"),
        ("GET", "/api/v1/agents/one/slots/9", "slot '9' not found on agent 'one'"),
        ("POST", "/api/v1/agents/one/slots/9/disable", "slot '9' not found on agent 'one'"),
        ("GET", "/api/v1/users/77", "user '77' not found"),
        ("GET", "/api/v1/users/nobody/by-username", "user 'nobody' not found"),
        ("GET", "/api/v1/workspaces/7", "workspace '7' not found"),
        ("GET", "/api/v1/projects/7", "project '7' not found"),
    ],
)
async def test_the_sentence_of_a_404_quotes_the_id(cluster: Cluster, method: str, path: str, sentence: str):
    await cluster.join()
    answer = await cluster.client.request(method, path, json={} if method == "POST" else None)
    assert answer.status_code == 404, answer.text
    assert answer.json()["error"]["error"] == sentence


@pytest.mark.parametrize(("offset", "start", "end"), [(0, 0, 2), (1, 1, 3), (-1, 2, 3), (7, 3, 3)])
async def test_pagination_repeats_the_requested_offset(cluster: Cluster, offset: int, start: int, end: int):
    async with cluster.master.database.write() as session:
        for _ in range(3):
            await add_experiment(session)
    page = (await cluster.get("/api/v1/experiments", offset=offset, limit=2))["pagination"]
    assert page == {"offset": offset, "limit": 2, "startIndex": start, "endIndex": end, "total": 3}
