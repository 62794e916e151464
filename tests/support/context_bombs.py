"""Small contexts that are harmful to read or to unpack."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import zstandard

GIGABYTE = 10**9
_PIECE = 1 << 20


def bomb(kind: str, size: float = 1.0) -> bytes:
    """Returns the bytes of a context of one of ``KINDS``. ``size``: its unpacked size in gigabytes, or in millions of
    files."""
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join([*(packer.compress(piece) for piece in KINDS[kind](size)), packer.flush()])


def _large_file(size: float) -> Iterator[bytes]:
    header = tarfile.TarInfo("run.py")
    header.size = int(size * GIGABYTE) // _PIECE * _PIECE
    yield header.tobuf()
    yield from _zeros(header.size)


def _plain_zeros(size: float) -> Iterator[bytes]:
    yield from _zeros(int(size * GIGABYTE))


def _empty_files(size: float) -> Iterator[bytes]:
    for number in range(int(size * 1_000_000)):
        yield tarfile.TarInfo(f"{number}").tobuf()
    yield bytes(1024)


def _deep_folders(size: float) -> Iterator[bytes]:
    """Yields files that each have two thousand folders of their own."""
    for number in range(int(size * 1000)):
        path = f"{number}/" + "a/" * 2000 + "run.py"
        yield tarfile.TarInfo(path).tobuf(format=tarfile.PAX_FORMAT)
    yield bytes(1024)


def _long_header(size: float) -> Iterator[bytes]:
    """Yields a header with a name of a third of a gigabyte, which an archive reader loads into memory at once."""
    header = tarfile.TarInfo("name")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, int(size * GIGABYTE / 3) // _PIECE * _PIECE
    yield header.tobuf(format=tarfile.GNU_FORMAT)
    yield from _zeros(header.size)


def _link(target: str) -> Iterator[bytes]:
    header = tarfile.TarInfo("data")
    header.type, header.linkname = tarfile.SYMTYPE, target
    yield header.tobuf()
    file = tarfile.TarInfo("data/written")
    file.size = 5
    yield file.tobuf() + b"hello".ljust(512, b"\0") + bytes(1024)


def _device(_size: float) -> Iterator[bytes]:
    header = tarfile.TarInfo("data")
    header.type = tarfile.FIFOTYPE
    yield header.tobuf() + bytes(1024)


def _zeros(count: int) -> Iterator[bytes]:
    piece = bytes(_PIECE)
    for _ in range(count // _PIECE):
        yield piece


KINDS = {
    "large file": _large_file,
    "zeros": _plain_zeros,
    "empty files": _empty_files,
    "deep folders": _deep_folders,
    "long header": _long_header,
    "link out": lambda _size: _link("../../.."),
    "absolute link": lambda _size: _link("/"),
    "device": _device,
}


def usage(folder: Path) -> tuple[int, int]:
    """Returns the bytes and the number of entries below a folder."""
    entries = list(folder.rglob("*"))
    return sum(path.lstat().st_size for path in entries if path.is_file()), len(entries)
