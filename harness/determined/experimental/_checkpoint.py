"""Checkpoints of the SDK: metadata, download, deletion."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from determined.client import checkpoints
from determined.client.checkpoint_archive import download_archive
from determined.client.numbers import from_wire as numbers
from determined.client.session import Session
from determined.errors import StorageError
from determined.experimental._enums import CheckpointState, DownloadMode, from_wire
from determined.experimental._metrics import TrialMetrics, stream_reports
from determined.experimental._times import parse_time
from determined.storage import from_config

METADATA_FILE = "metadata.json"


@dataclass(frozen=True)
class CheckpointTrainingMetadata:
    """The training that produced a checkpoint.

    Attributes:
        experiment_config: configuration of the experiment, complete with defaults.
        experiment_id: id of the experiment.
        trial_id: id of the trial.
        hparams: hyperparameters of the trial.
        validation_metrics: validation metrics at the checkpoint's step; empty if there was no validation.
        searcher_metric: value of the searcher's metric at that step, or None.
    """

    experiment_config: dict[str, Any]
    experiment_id: int
    trial_id: int
    hparams: dict[str, Any]
    validation_metrics: dict[str, Any]
    searcher_metric: float | None = None


class Checkpoint:
    """A stored checkpoint.

    Args:
        session: the connection to the master.
        data: what the API shows.

    Attributes:
        uuid: its id.
        state: a CheckpointState.
        metadata: what the task stored with it; ``steps_completed`` is always there.
        resources: size in bytes by file path.
        training: the training that it comes from, or None if its trial was deleted.
        report_time: time of its report, with a time zone.
        task_id: id of the task that stored it.
        allocation_id: id of the allocation that stored it.

    Example:
        >>> checkpoint = client.get_checkpoint("a1f3…")              # doctest: +SKIP
        >>> folder = checkpoint.download("model")                    # doctest: +SKIP
    """

    def __init__(self, session: Session, data: Mapping[str, Any]) -> None:
        self._session = session
        self._set(data)

    def _set(self, data: Mapping[str, Any]) -> None:
        self.uuid = str(data["uuid"])
        self.state = from_wire(CheckpointState, data.get("state"))
        self.metadata: dict[str, Any] = dict(data.get("metadata") or {})
        self.resources = {path: int(size) for path, size in (data.get("resources") or {}).items()}
        self.report_time: datetime | None = parse_time(data.get("reportTime"))
        self.task_id: str | None = data.get("taskId")
        self.allocation_id: str | None = data.get("allocationId")
        self.training = _training(data.get("training") or {})

    def __repr__(self) -> str:
        return f"Checkpoint(uuid={self.uuid!r}, state={self.state.name})"

    def reload(self) -> None:
        """Reads the checkpoint from the master again."""
        self._set(checkpoints.get(self._session, self.uuid))

    def download(self, path: str | os.PathLike[str] | None = None, mode: DownloadMode = DownloadMode.AUTO) -> str:
        """Copies the files of the checkpoint into a folder, together with ``metadata.json``.

        Args:
            path: the folder; ``checkpoints/UUID`` below the working folder if not given. It is created.
            mode: see :class:`DownloadMode`.

        Returns:
            The folder.

        Raises:
            StorageError: the files are gone, or this machine does not reach the storage (``DIRECT``).
            ApiError: the master refuses (``MASTER``).
        """
        target = Path("checkpoints") / self.uuid if path is None else Path(path)
        mode = DownloadMode(mode)
        if mode is DownloadMode.MASTER or not self._copied(target, required=mode is DownloadMode.DIRECT):
            download_archive(self._session, self.uuid, target)
        if not (target / METADATA_FILE).exists():
            self.write_metadata_file(target / METADATA_FILE)
        return str(target)

    def _copied(self, target: Path, *, required: bool) -> bool:
        """Copies from the storage; returns False if that is not possible here."""
        config = self.training.experiment_config.get("checkpoint_storage") if self.training else None
        try:
            if not config:
                raise StorageError(f"the storage of checkpoint {self.uuid} is unknown: its experiment was deleted")
            environ = dict(os.environ)
            if config.get("host_path"):
                # Outside of a task, use the host's path instead of the container's.
                environ.setdefault("DET_SHARED_FS", str(config["host_path"]))
            from_config(config, environ).download(self.uuid, target)
        except StorageError:
            if required:
                raise
            return False
        return True

    def write_metadata_file(self, path: str | os.PathLike[str]) -> None:
        """Writes ``metadata`` as JSON.

        Args:
            path: the file.
        """
        Path(path).write_text(json.dumps(self.metadata, indent=2), encoding="utf-8")

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Adds entries to the metadata on the master; existing names are replaced.

        Args:
            metadata: values that JSON can hold.
        """
        self._store({**self.metadata, **metadata})

    def remove_metadata(self, keys: Sequence[str]) -> None:
        """Removes entries from the metadata on the master.

        Args:
            keys: names to remove; unknown ones are ignored.
        """
        self._store({name: value for name, value in self.metadata.items() if name not in keys})

    def _store(self, metadata: dict[str, Any]) -> None:
        body = {"checkpoint": {"uuid": self.uuid, "metadata": metadata}}
        self._session.post(f"{checkpoints.PREFIX}/{self.uuid}/metadata", body)
        self.metadata = metadata

    def delete(self) -> None:
        """Deletes the files of the checkpoint. Only its owner and admins may do that."""
        checkpoints.delete(self._session, [self.uuid])

    def remove_files(self, globs: Sequence[str]) -> None:
        """Deletes the files that match.

        Args:
            globs: patterns such as ``"optimizer/**"``.
        """
        body = {"checkpointUuids": [self.uuid], "checkpointGlobs": list(globs)}
        self._session.post(f"{checkpoints.PREFIX}/rm", body)
        self.reload()

    def get_metrics(self, group: str | None = None) -> Iterator[TrialMetrics]:
        """Yields the metrics of the trial at the checkpoint's step.

        Args:
            group: ``training``, ``validation``, or a group of the script's own; all groups if not given.
        """
        if self.training is None:
            return
        for report in stream_reports(self._session, [self.training.trial_id], group or ""):
            if report.steps_completed == self.metadata.get("steps_completed"):
                yield report


def _training(data: Mapping[str, Any]) -> CheckpointTrainingMetadata | None:
    if data.get("trialId") is None:
        return None
    values = numbers((data.get("validationMetrics") or {}).get("avgMetrics") or {})
    metric = numbers(data.get("searcherMetric"))
    return CheckpointTrainingMetadata(
        experiment_config=dict(data.get("experimentConfig") or {}),
        experiment_id=int(data["experimentId"]),
        trial_id=int(data["trialId"]),
        hparams=dict(data.get("hparams") or {}),
        validation_metrics=values,
        searcher_metric=None if metric is None else float(metric),
    )
