"""The state of the code of an experiment: stored with its creation, shown without secrets, deleted with it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.waiting import eventually

from determined_master.db.models import ExperimentCodeRow

CODE: dict[str, Any] = {
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "branch": "main",
    "remote": "git@example.org:ann/digits.git",
    "diff": "-print(1)\n+print('é\x1b[31m')\n",
    "isCut": False,
    "untracked": ["new.py"],
}
NONE = {"code": None}


async def code_of(cluster: Cluster, experiment: int, **query: Any) -> Any:
    return await cluster.get(f"/detent/experiments/{experiment}/code", **query)


async def rows(cluster: Cluster) -> int:
    async with cluster.master.database.read() as session:
        return int((await session.execute(select(func.count()).select_from(ExperimentCodeRow))).scalar_one())


async def test_the_state_of_the_code_is_stored_with_the_experiment(cluster: Cluster) -> None:
    experiment = await cluster.create(code=CODE)
    assert await code_of(cluster, experiment) == {"code": {**CODE, "isDirty": True}}
    assert await code_of(cluster, experiment, diff=False) == {"code": {**CODE, "isDirty": True, "diff": ""}}
    clean = await cluster.create(code={"commit": "abcd"})
    assert (await code_of(cluster, clean))["code"]["isDirty"] is False


async def test_an_experiment_without_it_has_none(cluster: Cluster) -> None:
    experiment = await cluster.create()
    assert await code_of(cluster, experiment) == NONE
    assert (await cluster.client.get("/detent/experiments/77/code")).status_code == 404
    fork = await cluster.create(parentId=await cluster.create(code=CODE))
    assert await code_of(cluster, fork) == NONE


async def test_secrets_of_the_configuration_are_masked(cluster: Cluster) -> None:
    config = f"{CONFIG}environment: {{environment_variables: [API_TOKEN=tok-123456]}}\n"
    code = {**CODE, "diff": "+connect('tok-123456')\n", "remote": "https://ann:tok-9@example.org/a"}
    experiment = await cluster.create(config, code=code)
    shown = (await code_of(cluster, experiment))["code"]
    assert (shown["diff"], shown["remote"]) == ("+connect('********')\n", "https://ann:********@example.org/a")


async def test_a_cluster_that_stores_no_code_creates_the_experiment_without_it(tmp_path: Path) -> None:
    async with open_cluster(tmp_path, store_code=False) as cluster:
        assert await code_of(cluster, await cluster.create(code=CODE)) == NONE
        assert await rows(cluster) == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"diff": "x" * ((1 << 20) + 1)}, "diff"),
        ({"commit": "\x1b[31m"}, "commit"),
        ({"branch": "b" * 1001}, "branch"),
        ({"untracked": ["n"] * 1001}, "untracked"),
        ({"untracked": ["n" * 1001]}, "untracked"),
        ({"isCut": "perhaps"}, "isCut"),
    ],
)
async def test_code_that_is_too_long_or_none_is_refused_with_the_field(
    cluster: Cluster, change: dict[str, Any], told: str
) -> None:
    answer = await cluster.post("/api/v1/experiments", {"config": CONFIG, "code": {**CODE, **change}})
    assert answer.status_code == 400
    assert told in answer.text
    assert await rows(cluster) == 0


async def test_a_diff_of_a_mebibyte_is_stored(cluster: Cluster) -> None:
    diff = "+" + "é\n" * (1 << 19)
    experiment = await cluster.create(code={**CODE, "diff": diff[: 1 << 20], "isCut": True})
    shown = (await code_of(cluster, experiment))["code"]
    assert (shown["diff"] == diff[: 1 << 20], shown["isCut"]) == (True, True)


async def test_a_check_without_creation_and_a_refused_one_store_no_code(cluster: Cluster) -> None:
    only_checked = {"config": CONFIG, "validateOnly": True, "code": CODE}
    assert (await cluster.post("/api/v1/experiments", only_checked)).status_code == 200
    assert (await cluster.post("/api/v1/experiments", {"config": "name: x", "code": CODE})).status_code == 400
    assert await rows(cluster) == 0


async def test_the_code_is_deleted_with_its_experiment(cluster: Cluster) -> None:
    experiment = await cluster.create(code=CODE)
    other = await cluster.create(code=CODE)
    assert (await cluster.post(f"/api/v1/experiments/{experiment}/kill")).status_code == 200

    await eventually(partial(_ends, cluster, experiment))
    assert (await cluster.client.delete(f"/api/v1/experiments/{experiment}")).status_code == 200

    async def is_deleted() -> bool:
        return (await cluster.client.get(f"/detent/experiments/{experiment}/code")).status_code == 404

    await eventually(is_deleted)
    assert await rows(cluster) == 1
    assert (await code_of(cluster, other))["code"]["branch"] == "main"


async def _ends(cluster: Cluster, experiment: int) -> bool:
    return await cluster.state(experiment) == "STATE_CANCELED"
