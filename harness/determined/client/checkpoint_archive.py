"""Downloads a checkpoint through the master: a tar archive that is unpacked while it arrives."""

import shutil
import tarfile
from pathlib import Path, PurePosixPath

from determined.client.session import Session
from determined.errors import StorageError


def download_archive(session: Session, uuid: str, target: Path) -> None:
    """Writes the files of a checkpoint below ``target``, which is created. The archive is never whole in memory.

    Raises:
        ApiError: the master refuses or does not answer.
        StorageError: the archive ended early or has a name outside of the folder.
    """
    with session.open(f"/checkpoints/{uuid}", headers={"Accept": "application/gzip"}) as body:
        target.mkdir(parents=True, exist_ok=True)
        try:
            with tarfile.open(fileobj=body, mode="r|gz") as archive:
                for member in archive:
                    _unpack(archive, member, target)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise StorageError(f"checkpoint {uuid} was not downloaded completely to {target}: {error}") from None


def _unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
        raise StorageError(f"the archive has an entry that is refused: {member.name!r}")
    place = target / path
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    content = archive.extractfile(member)
    if content is None:
        raise StorageError(f"the archive has no content for {member.name!r}")
    with content, place.open("wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
