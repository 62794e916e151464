"""A checkpoint stays where it was stored, whatever happens to its experiment's configuration."""

import json
from pathlib import Path

from sqlalchemy import select, update
from tests.integration.test_checkpoints import delete_experiment, running
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint, store_checkpoint
from tests.support.cluster import Cluster, cluster

from determined_master.db.models import ExperimentRow, StorageBackendRow

UUID, OTHER, THIRD = (checkpoint_uuid(number) for number in (1, 2, 3))


async def storage_id(one: Cluster, uuid: str) -> int:
    return int((await one.get(f"/api/v1/checkpoints/{uuid}"))["checkpoint"]["storageId"])


async def backends(one: Cluster) -> list[dict[str, object]]:
    async with one.master.database.read() as session:
        return list((await session.scalars(select(StorageBackendRow.config))).all())


async def test_checkpoints_of_one_storage_have_one_id(one: Cluster, tmp_path: Path):
    first, second, elsewhere = await running(one), await running(one), await running(one, tmp_path)
    for wish, uuid in ((first, UUID), (second, OTHER), (elsewhere, THIRD)):
        await report_checkpoint(one, wish.allocation_id, uuid)
    assert await storage_id(one, UUID) == await storage_id(one, OTHER) != await storage_id(one, THIRD)
    body = {"runId": 3, "checkpointStorage": {"type": "s3"}}
    answer = await one.post("/api/v1/runs/start", body, **one.as_task(elsewhere.allocation_id))
    assert answer.json() == {"storageId": await storage_id(one, THIRD)}
    assert await backends(one) == [
        {"type": "shared_fs", "host_path": str(one.master.settings.data / "checkpoints"), "propagation": "rprivate"},
        {"type": "directory", "container_path": str(tmp_path)},
    ]


async def test_a_changed_configuration_orphans_no_checkpoint(one: Cluster, tmp_path: Path):
    wish = await running(one)
    root = one.master.settings.data / "checkpoints"
    store_checkpoint(root, UUID)
    await report_checkpoint(one, wish.allocation_id, UUID)
    async with one.master.database.write() as session:
        row = await session.get(ExperimentRow, 1)
        assert row is not None
        config = json.loads(json.dumps(row.config)) | {
            "checkpoint_storage": {"type": "directory", "container_path": str(tmp_path / "new")}
        }
        await session.execute(update(ExperimentRow).where(ExperimentRow.id == 1).values(config=config))
    assert (await one.client.get(f"/checkpoints/{UUID}")).status_code == 200
    answer = await one.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [UUID]})
    assert answer.status_code == 200, answer.text
    assert list(root.iterdir()) == []


async def test_no_key_outlives_the_last_checkpoint_of_its_storage(tmp_path: Path):
    root = tmp_path / "checkpoints"
    root.mkdir()
    async with cluster(tmp_path, checkpoint_roots=[root]) as one:
        wish = await running(one, root)
        await report_checkpoint(one, wish.allocation_id, UUID)
        assert len(await backends(one)) == 1
        await delete_experiment(one, wish)
        assert await backends(one) == []
