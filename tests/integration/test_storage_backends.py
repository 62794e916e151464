"""The storage of a checkpoint does not change with the configuration of its experiment."""

import json
from pathlib import Path

from sqlalchemy import select, update
from tests.integration.test_checkpoints import delete_experiment, run_trial
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint, store_checkpoint
from tests.support.cluster import Cluster, open_cluster

from determined_master.db.models import ExperimentRow, StorageBackendRow

UUID, OTHER, THIRD = (checkpoint_uuid(number) for number in (1, 2, 3))


async def storage_id(cluster: Cluster, uuid: str) -> int:
    return int((await cluster.get(f"/api/v1/checkpoints/{uuid}"))["checkpoint"]["storageId"])


async def backends(cluster: Cluster) -> list[dict[str, object]]:
    async with cluster.master.database.read() as session:
        return list((await session.scalars(select(StorageBackendRow.config))).all())


async def test_checkpoints_of_one_storage_have_one_id(cluster: Cluster, tmp_path: Path):
    first, second, elsewhere = await run_trial(cluster), await run_trial(cluster), await run_trial(cluster, tmp_path)
    for desired, uuid in ((first, UUID), (second, OTHER), (elsewhere, THIRD)):
        await report_checkpoint(cluster, desired.allocation_id, uuid)
    assert await storage_id(cluster, UUID) == await storage_id(cluster, OTHER) != await storage_id(cluster, THIRD)
    body = {"runId": 3, "checkpointStorage": {"type": "s3"}}
    answer = await cluster.post("/api/v1/runs/start", body, **cluster.as_task(elsewhere.allocation_id))
    assert answer.json() == {"storageId": await storage_id(cluster, THIRD)}
    assert await backends(cluster) == [
        {
            "type": "shared_fs",
            "host_path": str(cluster.master.settings.data / "checkpoints"),
            "propagation": "rprivate",
        },
        {"type": "directory", "container_path": str(tmp_path)},
    ]


async def test_a_checkpoint_is_read_and_deleted_after_its_configuration_changed(cluster: Cluster, tmp_path: Path):
    desired = await run_trial(cluster)
    root = cluster.master.settings.data / "checkpoints"
    store_checkpoint(root, UUID)
    await report_checkpoint(cluster, desired.allocation_id, UUID)
    async with cluster.master.database.write() as session:
        row = await session.get(ExperimentRow, 1)
        assert row is not None
        config = json.loads(json.dumps(row.config)) | {
            "checkpoint_storage": {"type": "directory", "container_path": str(tmp_path / "new")}
        }
        await session.execute(update(ExperimentRow).where(ExperimentRow.id == 1).values(config=config))
    assert (await cluster.client.get(f"/checkpoints/{UUID}")).status_code == 200
    answer = await cluster.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [UUID]})
    assert answer.status_code == 200, answer.text
    assert list(root.iterdir()) == []


async def test_a_stored_storage_is_deleted_with_its_last_checkpoint(tmp_path: Path):
    root = tmp_path / "checkpoints"
    root.mkdir()
    async with open_cluster(tmp_path, checkpoint_roots=[root]) as cluster:
        desired = await run_trial(cluster, root)
        await report_checkpoint(cluster, desired.allocation_id, UUID)
        assert len(await backends(cluster)) == 1
        await delete_experiment(cluster, desired)
        assert await backends(cluster) == []
