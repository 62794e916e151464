"""Calls about outputs: what scripts of trials wrote, as their newest attempts left it."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from determined.client.checkpoint_archive import download_archive
from determined.client.session import Session
from determined.errors import NotFound, StorageError
from determined.storage.base import METADATA_FILE
from determined.storage.output_files import complete, refuse_links


def of_experiment(session: Session, experiment_id: int, trial_id: int | None = None) -> Iterator[dict[str, Any]]:
    """Yields the outputs of an experiment's trials, or of one of them, newest first, page after page."""
    before: str | None = ""
    while before is not None:
        query = {"before": before or None, "trialId": trial_id}
        answer = session.get(f"/detent/experiments/{experiment_id}/outputs", query)
        yield from answer["outputs"]
        before = answer["next"]


def of_trial(session: Session, experiment_id: int, trial_id: int) -> dict[str, Any]:
    """Returns the outputs of a trial. Raises NotFound if it has none."""
    for found in of_experiment(session, experiment_id, trial_id):
        return found
    raise NotFound(f"trial {trial_id} has no outputs: its configuration names none, or no attempt of it has ended yet")


def download(session: Session, uuid: str, target: Path) -> None:
    """Writes outputs below ``target`` through the master, with their links; other files there stay.

    Raises:
        ApiError: the master refuses or does not answer.
        StorageError: the archive ended early or has a name outside of the folder.
    """
    with arriving(target) as folder:
        download_archive(session, uuid, folder)


@contextlib.contextmanager
def arriving(target: Path) -> Iterator[Path]:
    """Yields a folder beside ``target`` for stored outputs. After the block they are moved to ``target``.

    A file of the same name is replaced; nothing changes if the block fails.

    Raises:
        StorageError: something else is where a file belongs.
    """
    target.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".outputs-", dir=target))
    try:
        yield folder
        metadata = folder / METADATA_FILE
        content = metadata.read_bytes()
        metadata.unlink()
        complete(folder, content)
        _move(folder, target)
    except FileNotFoundError as error:
        raise StorageError(f"these are no outputs of a trial: {error.filename} is missing") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move(folder: Path, target: Path) -> None:
    for base, folders, files in os.walk(folder):
        links = [name for name in folders if Path(base, name).is_symlink()]
        names = [Path(base, name).relative_to(folder).as_posix() for name in (*files, *links)]
        refuse_links(target, names)
        try:
            for name in set(folders) - set(links):
                (target / Path(base, name).relative_to(folder)).mkdir(exist_ok=True)
            for name in names:
                os.replace(folder / name, target / name)
        except (FileExistsError, IsADirectoryError) as error:
            raise StorageError(f"{error.filename2 or error.filename} is in the way of an output; move it") from None
