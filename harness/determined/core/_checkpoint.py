"""Checkpoints of the trial: stored whole, then reported."""

import contextlib
import json
import os
import uuid as uuids
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from determined.client import checkpoints
from determined.client.session import Session
from determined.core._distributed import DistributedContext
from determined.core._merge import merge_metadata, merge_resources
from determined.core._train import now
from determined.errors import StorageError
from determined.storage.base import METADATA_FILE, Selector, Storage
from determined.storage.directory import copy, tree


class DownloadMode(Enum):
    """Whether the workers of one machine share one download or each makes its own."""

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


class CheckpointContext:
    """``core_context.checkpoint``.

    >>> with core_context.checkpoint.store_path({"steps_completed": 10}) as (path, uuid):  # doctest: +SKIP
    ...     (path / "model.bin").write_bytes(b"...")
    """

    def __init__(
        self,
        storage: Storage,
        distributed: DistributedContext,
        *,
        session: Session | None = None,
        task_id: str = "",
        allocation_id: str = "",
        before_report: Callable[[], object] = lambda: None,
    ) -> None:
        self._storage = storage
        self._distributed = distributed
        self._session = session
        self._task_id = task_id
        self._allocation_id = allocation_id
        self._before_report = before_report

    def upload(
        self,
        ckpt_dir: str | os.PathLike[str] | None,
        metadata: Mapping[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Selector | None = None,
    ) -> str:
        """Stores a folder's files and reports them; the new uuid. With ``shard`` all workers call."""
        if not shard:
            self._chief_only("upload")
            if ckpt_dir is None:
                raise ValueError("ckpt_dir is None; only with shard=True a worker may have nothing to store")
            with self.store_path(metadata) as (path, uuid):
                _fill(Path(ckpt_dir), path, selector)
            return uuid
        if not any(self._distributed.allgather(ckpt_dir is not None)):
            raise ValueError("upload(shard=True): no worker has a folder to store")
        with self.store_path(metadata, shard=True) as (path, uuid):
            mine = _status(ckpt_dir)
            # workers that share a folder store it once
            first = self._distributed.allgather(mine).index(mine) == self._distributed.rank
            if ckpt_dir is not None and first:
                names = _selected(Path(ckpt_dir), selector)
                merge_resources(self._distributed, Path(ckpt_dir), names)
                _fill(Path(ckpt_dir), path, selector)
            else:
                merge_resources(self._distributed, None, [])
        return uuid

    @contextlib.contextmanager
    def store_path(
        self, metadata: Mapping[str, Any] | None = None, *, shard: bool = False
    ) -> Iterator[tuple[Path, str]]:
        """A folder to write into and its uuid; at the end it is stored whole and reported."""
        if not shard:
            self._chief_only("store_path")
            values = _checked(metadata)
            uuid = str(uuids.uuid4())
            with self._storage.store_path(uuid, _writes_metadata(values)) as path:
                yield path, uuid
            self._report(uuid, values)
            return
        values = merge_metadata(self._distributed.allgather(dict(metadata or {})))
        _checked(values)
        uuid = str(self._distributed.broadcast(str(uuids.uuid4())))
        if self._distributed.rank == 0:
            with self._storage.store_path(uuid, _writes_metadata(values)) as path:
                self._distributed.broadcast(str(path))
                yield path, uuid
                self._all_well(True)
            self._report(uuid, values)
        else:
            path = Path(self._distributed.broadcast(None))
            try:
                yield path, uuid
            except BaseException:
                self._distributed.gather(False)
                raise
            self._distributed.gather(True)
        self._distributed.broadcast(None)

    @contextlib.contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> Iterator[Path]:
        """A folder with the checkpoint's files, to read only."""
        with self._storage.restore_path(storage_id) as path:
            yield path

    def download(
        self,
        storage_id: str,
        ckpt_dir: str | os.PathLike[str],
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> None:
        """Copies the checkpoint's files into ``ckpt_dir``."""
        target = Path(ckpt_dir)
        if download_mode is DownloadMode.NoSharedDownload or self._distributed.local_size == 1:
            self._storage.download(storage_id, target, selector)
            return
        names = self._storage.resources(storage_id)
        wanted = {name for name in names if selector is None or selector(name)}
        every = set().union(*self._distributed.allgather_local(wanted))
        if self._distributed.local_rank == 0:
            self._storage.download(storage_id, target, every.__contains__)
        self._distributed.broadcast_local(None)

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """The metadata the checkpoint was stored with, and what was added later."""
        if self._session is not None:
            return dict(checkpoints.get(self._session, storage_id).get("metadata") or {})
        try:
            return dict(json.loads(self._storage.read(storage_id, METADATA_FILE)))
        except ValueError:
            raise StorageError(f"checkpoint {storage_id}: {METADATA_FILE} cannot be read") from None

    def delete(self, storage_id: str) -> None:
        """Removes the checkpoint's files and tells the master."""
        self._storage.delete(storage_id)
        if self._session is not None:
            checkpoints.report_deleted(self._session, storage_id)

    def _all_well(self, mine: bool) -> None:
        answers = self._distributed.gather(mine) or []
        if not all(answers):
            bad = [rank for rank, well in enumerate(answers) if not well]
            raise RuntimeError(f"the checkpoint is not stored: workers of rank {bad} failed")

    def _report(self, uuid: str, metadata: dict[str, Any]) -> None:
        self._before_report()
        if self._session is None:
            return
        checkpoints.report(
            self._session,
            {
                "uuid": uuid,
                "taskId": self._task_id,
                "allocationId": self._allocation_id,
                "reportTime": now(),
                "resources": {name: str(size) for name, size in self._storage.resources(uuid).items()},
                "metadata": metadata,
                "state": "STATE_COMPLETED",
                "training": {},
            },
        )

    def _chief_only(self, what: str) -> None:
        if self._distributed.rank != 0:
            raise RuntimeError(f"{what} without shard=True is for the chief (rank 0) alone")


class DummyCheckpointContext(CheckpointContext):
    """Off the cluster: stored in a folder, reported to nobody."""

    def __init__(self, storage: Storage, distributed: DistributedContext) -> None:
        super().__init__(storage, distributed)


def _checked(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    values = dict(metadata or {})
    steps = values.get("steps_completed")
    if not isinstance(steps, int) or isinstance(steps, bool):
        raise ValueError(f"a checkpoint's metadata needs steps_completed, a whole number; it is {steps!r}")
    json.dumps(values)
    return values


def _writes_metadata(values: dict[str, Any]) -> Callable[[Path], None]:
    def finish(folder: Path) -> None:
        (folder / METADATA_FILE).write_text(json.dumps(values, indent=2, sort_keys=True), encoding="utf-8")

    return finish


def _selected(source: Path, selector: Selector | None) -> list[str]:
    return [name for name in sorted(tree(source)) if selector is None or selector(name)]


def _fill(source: Path, target: Path, selector: Selector | None) -> None:
    for name in _selected(source, selector):
        copy(source / name, target / name)


def _status(folder: str | os.PathLike[str] | None) -> tuple[int, int] | None:
    if folder is None:
        return None
    status = os.stat(folder)
    return status.st_dev, status.st_ino
