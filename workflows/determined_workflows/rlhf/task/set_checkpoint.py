"""The checkpoint of the whole set of workers: each process writes its part, and all parts or none are stored.

Layout: ``workers/ROLE-N.pt`` is the state of one process, ``deepspeed/ROLE/`` the parts of an engine of DeepSpeed,
``models/ROLE/`` what ``ModelInterface.save`` wrote.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from determined import core

MODES = ("disabled", "resume", "auto", "save")
RECOVER, FOLDER = "DETENT_RLHF_RECOVER", "DETENT_RLHF_FOLDER"
LATEST_FILE, CHECKPOINTS_FOLDER, WORKERS_FOLDER = "latest", "checkpoints", "workers"


class NothingToResume(RuntimeError):
    """The mode ``resume`` needs an earlier state and there is none."""


class SetCheckpoint:
    """Stores and restores the set. Every process has one and calls the same methods in the same order.

    Args:
        context: the Core API of this process.
        part: name of this process's part, for example ``actor-0``.
        environ: environment variables; they give the recover mode and, off the cluster, the folder of the run.

    Raises:
        ValueError: the recover mode is unknown.
    """

    def __init__(self, context: core.Context, part: str, environ: Mapping[str, str]) -> None:
        self._context = context
        self._part = part
        self._folder = Path(environ[FOLDER]) if environ.get(FOLDER) else None
        self._mode = environ.get(RECOVER) or "auto"
        if self._mode not in MODES:
            raise ValueError(f"{RECOVER} is one of {', '.join(MODES)}, not {self._mode!r}")

    @property
    def run_folder(self) -> Path | None:
        """Returns the folder of the run off the cluster; None on a cluster, or if the run has none."""
        return self._folder if self._context.info is None else None

    def latest(self) -> str | None:
        """Returns the uuid of the checkpoint to continue from, the same in every process; None for a new start.

        On a cluster it is the trial's newest checkpoint, whatever the mode. Off the cluster the mode decides: ``auto``
        and ``resume`` look for one, ``disabled`` and ``save`` do not.

        Raises:
            NothingToResume: the mode is ``resume`` and there is no checkpoint.
        """
        if self._context.info is not None:
            return self._context.info.latest_checkpoint
        checkpoint = self._local_latest() if self._mode in ("auto", "resume") else None
        checkpoint = self._context.distributed.broadcast(checkpoint)
        if checkpoint is None and self._mode == "resume":
            raise NothingToResume(
                f"the recover mode is resume, and {self._folder or 'this run'} has no checkpoint: use auto, or disabled"
            )
        return checkpoint if checkpoint is None else str(checkpoint)

    @contextlib.contextmanager
    def restored(self, uuid: str) -> Iterator[Path]:
        """Yields the folder of a checkpoint with this process's files; every process enters and leaves together."""
        with self._context.checkpoint.restore_path(uuid) as folder:
            yield folder

    def read(self, folder: Path, part: str | None = None) -> dict[str, Any]:
        """Returns the state of this process, or of another part. Raises RuntimeError if the checkpoint has none."""
        file = folder / WORKERS_FOLDER / f"{part or self._part}.pt"
        try:
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            have = ", ".join(sorted(path.stem for path in file.parent.glob("*.pt"))) or "none"
            raise RuntimeError(
                f"the checkpoint has no state of {file.stem}, only of {have}: the number of workers must stay the same"
            ) from None
        return state

    def store(
        self,
        steps: int,
        state: Mapping[str, Any],
        write_files: Callable[[Path], object] = lambda _: None,
        *,
        is_kept: bool = True,
    ) -> str:
        """Stores the set and returns the checkpoint's uuid. Every process calls it between the same two steps.

        Off the cluster the next checkpoint replaces one that was only stored to continue from. On a cluster the policy
        of the experiment says what is kept.

        Args:
            steps: steps completed.
            state: the state of this process: tensors, numbers, texts, lists and dictionaries.
            write_files: writes further files of this process into the folder that it receives.
            is_kept: False in the first process if the checkpoint is only stored to continue from.
        """
        metadata = {"steps_completed": steps} if self._context.distributed.rank == 0 else None
        with self._context.checkpoint.store_path(metadata, shard=True) as (folder, uuid):
            target = folder / WORKERS_FOLDER / f"{self._part}.pt"
            target.parent.mkdir()
            torch.save(dict(state), target)
            write_files(folder)
        if self._context.info is None and self._context.distributed.rank == 0:
            self._note_latest({"uuid": uuid, "steps_completed": steps, "is_kept": is_kept})
        return uuid

    def _local_latest(self) -> str | None:
        if self._folder is None or self._context.distributed.rank:
            return None
        latest = self._read_latest(self._folder)
        return None if latest is None else str(latest["uuid"])

    @staticmethod
    def _read_latest(folder: Path) -> dict[str, Any] | None:
        try:
            return dict(json.loads((folder / LATEST_FILE).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def _note_latest(self, latest: Mapping[str, Any]) -> None:
        """Writes the name of the newest checkpoint, which is whole, and removes the one before if nobody keeps it."""
        if self._folder is None:
            return
        before = self._read_latest(self._folder)
        partial = self._folder / f".{LATEST_FILE}-{secrets.token_hex(4)}"
        partial.write_text(json.dumps(latest), encoding="utf-8")
        os.replace(partial, self._folder / LATEST_FILE)
        if before is not None and not before.get("is_kept", True):
            self._context.checkpoint.delete(str(before["uuid"]))
