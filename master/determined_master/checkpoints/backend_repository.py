"""SQL of storage backends: where each checkpoint is, whatever its experiment's configuration says later."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, delete, select

from determined.config.storage import COMMON_FIELDS
from determined_master.db.models import CheckpointRow, ExperimentRow, StorageBackendRow, TrialRow
from determined_master.db.session import ReadSession, WriteSession


@dataclass(frozen=True)
class StoredCheckpoint:
    """A checkpoint and its storage, which is None if its experiment is gone: then no file is touched."""

    uuid: str
    storage: dict[str, Any] | None
    experiment_id: int | None = None


async def backend_id(session: WriteSession, storage: Mapping[str, Any]) -> int:
    """Returns the id of a ``checkpoint_storage`` section, which is added if it is new."""
    found = await known_id(session, storage)
    if found is not None:
        return found
    place = _place(storage)
    row = StorageBackendRow(digest=_digest(place), config=place)
    session.add(row)
    await session.flush()
    return row.id


async def known_id(session: ReadSession, storage: Mapping[str, Any]) -> int | None:
    """Returns the id of a ``checkpoint_storage`` section; None before the first checkpoint in it."""
    query = select(StorageBackendRow.id).where(StorageBackendRow.digest == _digest(_place(storage)))
    return (await session.execute(query)).scalar_one_or_none()


def _place(storage: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the section without its policy, which makes no other place of it."""
    return {name: value for name, value in storage.items() if name not in COMMON_FIELDS and value is not None}


def _digest(place: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(place, order="sorted")).hexdigest()


async def stored(
    session: ReadSession, which: ColumnElement[bool], most: int | None = None
) -> Sequence[StoredCheckpoint]:
    """Returns checkpoints with their storage, by id."""
    query = (
        select(CheckpointRow.uuid, StorageBackendRow.config, ExperimentRow.config, ExperimentRow.id)
        .outerjoin(StorageBackendRow, StorageBackendRow.id == CheckpointRow.storage_id)
        .outerjoin(TrialRow, TrialRow.task_id == CheckpointRow.task_id)
        .outerjoin(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
        .where(which)
        .order_by(CheckpointRow.uuid)
        .limit(most)
    )
    found = (await session.execute(query)).all()
    # Checkpoints of versions before these rows are where their experiment's configuration says.
    return [
        StoredCheckpoint(uuid, None if config is None else own or config.get("checkpoint_storage", {}), experiment_id)
        for uuid, own, config, experiment_id in found
    ]


async def storage_of(session: ReadSession, uuid: str) -> dict[str, Any] | None:
    """Returns the storage of one checkpoint; None if its experiment is gone."""
    found = await stored(session, CheckpointRow.uuid == uuid)
    return found[0].storage if found else None


async def of_experiment(session: ReadSession, experiment_id: int) -> Sequence[StoredCheckpoint]:
    """Returns all checkpoints of an experiment with their storage."""
    return await stored(session, TrialRow.experiment_id == experiment_id)


async def drop_unused(session: WriteSession) -> None:
    """Deletes the backends of no checkpoint: they may hold keys."""
    used = select(CheckpointRow.storage_id).where(CheckpointRow.storage_id.is_not(None))
    await session.execute(delete(StorageBackendRow).where(StorageBackendRow.id.not_in(used)))
