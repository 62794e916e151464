"""Whose account pays for a pool of Slurm: who may submit to it, and where the account is shown."""

import os
from pathlib import Path

import pytest
from tests.support.cluster import CONFIG, Cluster, login, open_cluster

from determined_master.users.pool_account import own_account

COMMAND = {"config": {"entrypoint": ["true"], "resources": {"resource_pool": "slurm"}}}
IN_SLURM = CONFIG + "resources: {resource_pool: slurm}\n"


def settings(**more: object) -> dict[str, object]:
    provider = {"type": "slurm", "max_agents": 2, "sbatch": {"partition": "gpu", "account": "ml"}, **more}
    return {
        "resource_pools": [{"pool_name": "slurm", "provider": provider}, {"pool_name": "own"}],
        "default_pool": "own",
    }


async def submissions(cluster: Cluster) -> list[tuple[int, str]]:
    """Returns the answers to an experiment, a command and a change of pool."""
    moved = await cluster.create(CONFIG)
    job_id = (await cluster.get(f"/api/v1/experiments/{moved}"))["experiment"]["jobId"]
    change = {"updates": [{"jobId": job_id, "resourcePool": "slurm"}]}
    answers = [
        await cluster.post("/api/v1/experiments", {"config": IN_SLURM, "activate": True}),
        await cluster.post("/api/v1/commands", COMMAND),
        await cluster.post("/api/v1/job-queues", change),
    ]
    return [(answer.status_code, answer.text) for answer in answers]


async def test_work_of_another_user_in_a_pool_of_slurm_is_refused_with_the_account_that_would_pay(tmp_path: Path):
    async with open_cluster(tmp_path, **settings()) as cluster:
        await login(cluster.client, "determined")
        for status, text in await submissions(cluster):
            assert status == 403, text
            assert f"charged to {own_account()} (Slurm account ml); only admins may submit to it" in text
            assert "share_account: true" in text


@pytest.mark.parametrize("who", ["admin", "linked", "shared"])
async def test_admins_linked_users_and_users_of_a_shared_account_may_submit_to_a_pool_of_slurm(
    tmp_path: Path, who: str
):
    async with open_cluster(tmp_path, **settings(**({"share_account": True} if who == "shared" else {}))) as cluster:
        if who != "admin":
            link = {"agentUid": os.geteuid(), "agentUser": "me", "agentGid": os.getegid(), "agentGroup": "me"}
            if who == "linked":
                answer = await cluster.client.patch("/api/v1/users/2", json={"agentUserGroup": link})
                assert answer.status_code == 200, answer.text
            await login(cluster.client, "determined")
        for status, text in await submissions(cluster):
            assert status == 200, text


async def test_the_account_of_a_pool_is_in_the_list_of_pools_and_the_overview(tmp_path: Path):
    async with open_cluster(tmp_path, **settings()) as cluster:
        pools = (await cluster.get("/api/v1/resource-pools"))["resourcePools"]
        overview = (await cluster.get("/detent/cluster/overview"))["pools"]
    for found in (pools, overview):
        assert {pool["name"]: pool["account"] for pool in found} == {
            "slurm": f"{own_account()} (Slurm account ml)",
            "own": "",
        }
