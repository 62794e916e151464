"""Outputs of trials in the SDK: the files that a script wrote."""

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from determined.client import checkpoints, outputs
from determined.client.session import Session
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._enums import DownloadMode
from determined.experimental._times import parse_time


class TrialOutputs:
    """The files that the script of a trial wrote into the folders that its configuration names in ``outputs``.

    Args:
        session: the connection to the master.
        data: what the API shows.

    Attributes:
        trial_id: id of the trial.
        uuid: id of the checkpoint that holds the files.
        size: number of bytes.
        files: number of files.
        folders: the folders, relative to the work folder of the trial.
        time: when they were stored, with a time zone.

    Example:
        >>> for outputs in client.get_experiment(3).outputs():           # doctest: +SKIP
        ...     outputs.download(f"results/{outputs.trial_id}")
    """

    def __init__(self, session: Session, data: Mapping[str, Any]) -> None:
        self._session = session
        self.trial_id = int(data["trialId"])
        self.uuid = str(data["uuid"])
        self.size = int(data["size"])
        self.files = int(data["files"])
        self.folders: list[str] = list(data["folders"])
        self.time: datetime | None = parse_time(data.get("time"))

    def __repr__(self) -> str:
        return f"TrialOutputs(trial_id={self.trial_id}, files={self.files}, size={self.size})"

    def download(self, path: str | os.PathLike[str] | None = None, mode: DownloadMode = DownloadMode.AUTO) -> str:
        """Copies the files into a folder, where each has the path that it had in the work folder.

        Args:
            path: the folder; ``outputs/trial-ID`` below the working folder if not given. It is created.
            mode: see :class:`DownloadMode`.

        Returns:
            The folder.

        Raises:
            StorageError: the files are gone, or this machine does not reach the storage (``DIRECT``).
            ApiError: the master refuses (``MASTER``), or newer outputs have replaced these.
        """
        target = Path("outputs") / f"trial-{self.trial_id}" if path is None else Path(path)
        stored = Checkpoint(self._session, checkpoints.get(self._session, self.uuid))
        with outputs.arriving(target) as folder:
            stored.download(folder, mode)
        return str(target)
