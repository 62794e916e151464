"""Searches for texts that are longer than a pattern of the database may be."""

from tests.support.cluster import CONFIG, Cluster

LONG = "x" * 60_000


async def test_a_long_description_is_searched_for(cluster: Cluster) -> None:
    await cluster.create(CONFIG + f"description: Before {LONG} after\n", activate=False)
    await cluster.create(CONFIG, activate=False)
    body = {"projectId": 1, "filters": {"description": f"BEFORE {LONG}", "projectId": 1}}
    answer = await cluster.post("/api/v1/projects/1/experiments/archive", body)
    assert answer.status_code == 200, answer.text
    assert [each["id"] for each in answer.json()["results"]] == [1]
