"""A checkpoint's folder as one archive, streamed while it is made."""

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from fastapi.responses import StreamingResponse

from determined.errors import NotFound


def stream(folder: Path, accept: str) -> StreamingResponse:
    """tar.gz unless zip is asked for. Raises NotFound where the files are gone."""
    if not folder.is_dir():
        raise NotFound(f"the files of checkpoint {folder.name} are not where they were written")
    if "zip" in accept and "gzip" not in accept:
        return StreamingResponse(_zip(folder), media_type="application/zip")
    return StreamingResponse(_tar(folder), media_type="application/gzip")


class _Buffer(io.RawIOBase):
    """What an archiver writes into; emptied between files."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = bytes(data)  # type: ignore[call-overload]  # any buffer will do
        self.chunks.append(chunk)
        self.position += len(chunk)
        return len(chunk)

    def tell(self) -> int:
        return self.position

    def taken(self) -> bytes:
        data = b"".join(self.chunks)
        self.chunks.clear()
        return data


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if not path.is_symlink())


def _tar(folder: Path) -> Iterator[bytes]:
    buffer = _Buffer()
    with tarfile.open(fileobj=buffer, mode="w|gz", bufsize=1 << 20) as archive:
        for path in _files(folder):
            archive.add(path, arcname=str(path.relative_to(folder)), recursive=False)
            yield buffer.taken()
    yield buffer.taken()


def _zip(folder: Path) -> Iterator[bytes]:
    buffer = _Buffer()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in _files(folder):
            archive.write(path, str(path.relative_to(folder)))
            yield buffer.taken()
    yield buffer.taken()
