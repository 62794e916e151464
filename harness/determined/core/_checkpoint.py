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
from determined.client.session import FOR_EVER, Session
from determined.core._all_ranks import run_on_all_ranks
from determined.core._distributed import DistributedContext
from determined.core._download import download_shared, restored_shared
from determined.core._own_process import OwnProcess
from determined.core._shard_merge import NOT_STORED, merge_metadata
from determined.core._sharding import Shard, storing
from determined.core._train import now
from determined.errors import Forbidden, NotFound, StorageError
from determined.storage.base import METADATA_FILE, Selector, Storage
from determined.storage.folder_listing import tree, warn_of_left_out


class DownloadMode(Enum):
    """Selects whether the workers of one machine share one download.

    ``LocalWorkersShareDownload``: one worker downloads for all workers of its machine. ``NoSharedDownload``: each
    worker downloads a copy of its own.
    """

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


class CheckpointContext:
    """Stores, reads and deletes checkpoints of the trial: ``core_context.checkpoint``.

    :func:`determined.core.init` makes it.

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
        self._process = OwnProcess()

    def upload(
        self,
        ckpt_dir: str | os.PathLike[str] | None,
        metadata: Mapping[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Selector | None = None,
    ) -> str:
        """Stores the files of a folder as a checkpoint, reports it and returns its uuid.

        Args:
            ckpt_dir: the folder with the files; None only with ``shard``, for a worker without files.
            metadata: values to store with the checkpoint, by name.
            shard: all workers call this method and each stores its part; workers that name the same folder store it
                once. Without ``shard`` only the chief (rank 0) calls it.
            selector: receives the name of each file relative to ``ckpt_dir`` and returns True if the file is to be
                stored.

        Raises:
            ValueError: no folder was given.
            RuntimeError: a worker that is not the chief called without ``shard``, or the parts contradict each other.
            StorageError: the storage failed.
        """
        self._require_own_process()
        if not shard:
            self._chief_only("upload")
            if ckpt_dir is None:
                raise ValueError("ckpt_dir is None; that is allowed only with shard=True")
            values, uuid, source = _checked(metadata), str(uuids.uuid4()), Path(ckpt_dir)
            warn_of_left_out(source)
            names = [name for name in sorted(tree(source)) if selector is None or selector(name)]
            self._storage.upload(source, uuid, names, _writes_metadata(values))
            self._report(uuid, values)
            return uuid
        if not any(self._distributed.allgather(ckpt_dir is not None)):
            raise ValueError("upload(shard=True): no worker gave a folder to store")
        with self._sharded(metadata) as (part, uuid):
            if ckpt_dir is not None:
                part.take(Path(ckpt_dir), selector)
        return uuid

    @contextlib.contextmanager
    def store_path(
        self, metadata: Mapping[str, Any] | None = None, *, shard: bool = False
    ) -> Iterator[tuple[Path, str]]:
        """Yields a new folder and the checkpoint's uuid; stores and reports the folder after the block.

        If the block raises an error, nothing is stored.

        With ``shard`` all workers call this method, each receives a folder of its own, and the folders become one
        checkpoint. If two folders have the same name with different content, or a worker fails, every worker raises an
        error and nothing is stored.

        Args:
            metadata: values to store with the checkpoint, by name.
            shard: all workers contribute files; without it only the chief (rank 0) calls this method.

        Raises:
            RuntimeError: a worker that is not the chief called without ``shard``, or the parts contradict each other.
            StorageError: the storage failed.
        """
        self._require_own_process()
        if not shard:
            self._chief_only("store_path")
            values = _checked(metadata)
            uuid = str(uuids.uuid4())
            with self._storage.store_path(uuid, _writes_metadata(values)) as path:
                yield path, uuid
                warn_of_left_out(path)
            self._report(uuid, values)
            return
        with self._sharded(metadata) as (part, uuid):
            yield part.folder, uuid

    @contextlib.contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> Iterator[Path]:
        """Yields a folder with the checkpoint's files, valid inside the block. Do not change the files.

        Args:
            storage_id: the checkpoint's uuid.
            download_mode: by default all workers of a machine call this method and share one folder, which has every
                file that one of them selects.
            selector: receives the name of each file and returns True if the file is needed; None selects all files.

        Raises:
            StorageError: the checkpoint does not exist or cannot be read.
        """
        with (
            restored_shared(self._storage, self._distributed, storage_id, selector)
            if self._shares(download_mode)
            else self._storage.restore_path(storage_id, selector)
        ) as path:
            yield path

    def download(
        self,
        storage_id: str,
        ckpt_dir: str | os.PathLike[str],
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> None:
        """Copies the checkpoint's files into a folder.

        Args:
            storage_id: the checkpoint's uuid.
            ckpt_dir: the folder to copy into.
            download_mode: by default all workers of a machine call this method with the same folder, and one of them
                copies every file that one of them selects.
            selector: receives the name of each file and returns True if the file is needed; None selects all files.

        Raises:
            StorageError: the checkpoint does not exist or cannot be read.
        """
        if self._shares(download_mode):
            download_shared(self._storage, self._distributed, storage_id, Path(ckpt_dir), selector)
        else:
            self._storage.download(storage_id, Path(ckpt_dir), selector)

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Returns the metadata of a checkpoint: the values stored with it and those that were added later.

        Args:
            storage_id: the checkpoint's uuid.

        Raises:
            NotFound: the master does not know the checkpoint.
            StorageError: off the cluster, the checkpoint's metadata file cannot be read.
        """
        if self._session is not None:
            return dict(checkpoints.get(self._session, storage_id).get("metadata") or {})
        try:
            return dict(json.loads(self._storage.read(storage_id, METADATA_FILE)))
        except ValueError:
            raise StorageError(f"checkpoint {storage_id}: cannot read {METADATA_FILE}") from None

    def delete(self, storage_id: str) -> None:
        """Deletes the files of a checkpoint and reports the deletion to the master.

        Args:
            storage_id: the checkpoint's uuid.

        Raises:
            StorageError: the files cannot be removed.
        """
        self._storage.delete(storage_id)
        if self._session is not None:
            checkpoints.report_deleted(self._session, storage_id)

    def _owner(self, storage_id: str) -> dict[str, Any] | None:
        """Returns experiment and trial of a checkpoint as the master knows them; None off the cluster."""
        if self._session is None:
            return None
        try:
            training = checkpoints.get(self._session, storage_id, retry=FOR_EVER).get("training") or {}
        except (Forbidden, NotFound):
            training = {}
        return {"experiment_id": training.get("experimentId"), "trial_id": training.get("trialId")}

    @contextlib.contextmanager
    def _sharded(self, metadata: Mapping[str, Any] | None) -> Iterator[tuple[Shard, str]]:
        peers = self._distributed
        values = merge_metadata(run_on_all_ranks(peers, NOT_STORED, lambda: _serializable(metadata)))
        _checked(values)
        uuid = str(peers.broadcast(str(uuids.uuid4())))
        with storing(self._storage, peers, uuid, _writes_metadata(values), lambda: self._report(uuid, values)) as shard:
            yield shard, uuid

    def _shares(self, mode: DownloadMode) -> bool:
        return mode is DownloadMode.LocalWorkersShareDownload and self._distributed.local_size > 1

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

    def _require_own_process(self) -> None:
        if self._session is not None:
            self._process.require("checkpoints are stored")

    def _chief_only(self, what: str) -> None:
        if self._distributed.rank != 0:
            raise RuntimeError(f"{what} without shard=True may be called only by the chief (rank 0)")


class DummyCheckpointContext(CheckpointContext):
    """The checkpoint context off the cluster: stores checkpoints in a folder and reports to no master."""

    def __init__(self, storage: Storage, distributed: DistributedContext) -> None:
        super().__init__(storage, distributed)


def _checked(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    values = dict(metadata or {})
    steps = values.get("steps_completed")
    if not isinstance(steps, int) or isinstance(steps, bool):
        raise ValueError(f"the metadata of a checkpoint needs steps_completed, an integer, not {steps!r}")
    return _serializable(values)


def _serializable(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    values = dict(metadata or {})
    json.dumps(values)
    return values


def _writes_metadata(values: dict[str, Any]) -> Callable[[Path], None]:
    def finish(folder: Path) -> None:
        (folder / METADATA_FILE).write_text(json.dumps(values, indent=2, sort_keys=True), encoding="utf-8")

    return finish
