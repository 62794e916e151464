"""Checkpoints of a test's master: ids, folders as a task's library writes them, and reports."""

import json
from pathlib import Path

from tests.support.cluster import Cluster

from determined.storage.base import METADATA_FILE


def checkpoint_uuid(number: int) -> str:
    """Returns the id of a test's checkpoint number ``number``."""
    return f"00000000-0000-4000-8000-{number:012x}"


def store_checkpoint(root: Path, uuid: str, steps: int = 1, **files: bytes) -> Path:
    """Writes a checkpoint folder with the metadata file that every library writes, the official one included."""
    folder = root / uuid
    folder.mkdir(parents=True)
    (folder / METADATA_FILE).write_text(json.dumps({"steps_completed": steps}))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


async def report_checkpoint(cluster: Cluster, allocation_id: str, uuid: str, steps: int = 1) -> None:
    body = {"uuid": uuid, "metadata": {"steps_completed": steps}, "resources": {"weights": 3}}
    answer = await cluster.post("/api/v1/checkpoints", body, **cluster.as_task(allocation_id))
    assert answer.status_code == 200, answer.text
