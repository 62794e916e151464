"""``--filter`` and ``--sort`` of ``det experiment list``, answered by the master's search."""

from argparse import Namespace

import pytest
from tests.support.cluster import CONFIG, Cluster
from tests.support.waiting import eventually

from determined_cli.experiment.search import question_of
from determined_cli.experiment.show import COLUMNS


async def listed(cluster: Cluster, *conditions: str, sort: str | None = None, owner: str | None = None) -> list[int]:
    question = question_of(Namespace(filter=list(conditions), sort=sort), COLUMNS, owner=owner)
    answer = await cluster.post("/api/v1/experiments-search", question | {"offset": 0, "limit": 200})
    assert answer.status_code == 200, answer.text
    return [each["experiment"]["id"] for each in answer.json()["experiments"]]


@pytest.fixture
async def three(cluster: Cluster) -> Cluster:
    """Returns a cluster with experiments 1 (killed and archived), 2 (with labels) and 3 (forked from 1)."""
    await cluster.create(CONFIG.replace("tiny", "beta"), activate=False)
    await cluster.create(CONFIG.replace("tiny", "alpha"), activate=False)
    await cluster.create(CONFIG.replace("tiny", "gamma"), activate=False, parentId=1)
    await cluster.client.patch("/api/v1/experiments/2", json={"labels": ["a", "b"]})
    await cluster.client.post("/api/v1/experiments/1/kill")

    async def is_canceled() -> bool:
        return await cluster.state(1) == "STATE_CANCELED"

    await eventually(is_canceled)
    assert (await cluster.client.post("/api/v1/experiments/1/archive")).status_code == 200
    return cluster


FILTERED: dict[tuple[str, ...], list[int]] = {
    ("name~AMM",): [3],
    ("name=alpha",): [2],
    ("state=canceled",): [1],
    ("State != canceled",): [3, 2],
    ("id>=2", "id<3"): [2],
    ("labels=b",): [2],
    ("labels=",): [3, 1],
    ("end_time=",): [3, 2],
    ("end_time!=",): [1],
    ("Parent ID=1",): [3],
    ("username!=admin",): [],
    ("archived=true",): [1],
    ("progress<100%", "start_time>2000-01-01"): [3, 2, 1],
}


async def test_each_filter_of_the_command_line_finds_its_experiments(three: Cluster):
    assert {conditions: await listed(three, *conditions) for conditions in FILTERED} == FILTERED


async def test_the_master_sorts_by_every_column_of_the_list(three: Cluster):
    ids = {key: sorted(await listed(three, sort=key)) for _, key in COLUMNS}
    assert ids == {key: [1, 2, 3] for _, key in COLUMNS}


async def test_experiments_are_sorted_by_the_given_column_and_direction(three: Cluster):
    assert await listed(three, sort="name") == [2, 1, 3]
    assert await listed(three, sort="forked_from:desc") == [3, 2, 1]


async def test_archived_experiments_and_those_of_others_are_left_out_of_a_users_own_list(three: Cluster):
    assert await listed(three, owner="admin") == [3, 2]
    assert await listed(three, "name~a", owner="determined") == []
