"""Completion of ids from their prefixes."""

from tests.support.cluster import Cluster


async def test_a_prefix_finds_the_ids_that_begin_with_it_and_a_whole_id_itself(cluster: Cluster) -> None:
    await cluster.create()
    await cluster.create()
    jobs = [(await cluster.get(f"/api/v1/experiments/{n}"))["experiment"]["jobId"] for n in (1, 2)]
    first = next(length for length in range(1, 40) if jobs[0][:length] != jobs[1][:length])
    answer = await cluster.get("/detent/ids/jobs", prefix=jobs[0][:first])
    assert answer == {"ids": [jobs[0]]}
    assert await cluster.get("/detent/ids/jobs", prefix=jobs[1]) == {"ids": [jobs[1]]}
    assert len((await cluster.get("/detent/ids/tasks", prefix="1."))["ids"]) == 1
    assert await cluster.get("/detent/ids/checkpoints", prefix="ff") == {"ids": []}
    assert await cluster.get("/detent/ids/jobs", prefix="%") == {"ids": []}
    for path in ("/detent/ids/jobs?prefix=", f"/detent/ids/jobs?prefix={'a' * 256}", "/detent/ids/users?prefix=a"):
        assert (await cluster.client.get(path)).status_code == 400
