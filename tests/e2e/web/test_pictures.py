"""Every picture of the documentation can be made from a real run and is not blank."""

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from tests.support.live_models import ROOT

pytestmark = [pytest.mark.e2e]

MIN_DIFFERENT_LINES = 20


def different_lines(picture: bytes) -> int:
    """Returns the number of different stored pixel lines of a PNG. A blank picture has two or three."""
    chunks: dict[bytes, bytes] = {}
    position = 8
    while position < len(picture):
        size, kind = struct.unpack(">I4s", picture[position : position + 8])
        chunks[kind] = chunks.get(kind, b"") + picture[position + 8 : position + 8 + size]
        position += size + 12
    height = struct.unpack(">I", chunks[b"IHDR"][4:8])[0]
    lines = zlib.decompress(chunks[b"IDAT"])
    length = len(lines) // height
    return len({lines[start : start + length] for start in range(0, len(lines), length)})


@pytest.mark.long
def test_every_picture_of_the_documentation_is_made_and_shows_something(tmp_path: Path):
    # Runs in a new process, since the browser of the other tests occupies this thread's event loop.
    command = [sys.executable, "-m", "tests.e2e.web.pictures", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    committed = subprocess.run(
        ["git", "ls-files", "docs/pictures/*.png"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    created = {path.name: different_lines(path.read_bytes()) for path in tmp_path.glob("*.png")}
    assert {Path(name).name for name in committed} - set(created) == set()
    assert {name: lines for name, lines in created.items() if lines < MIN_DIFFERENT_LINES} == {}


def test_a_blank_picture_has_few_different_lines():
    def png(lines: list[bytes]) -> bytes:
        data = zlib.compress(b"".join(b"\0" + line for line in lines))
        header = struct.pack(">IIBBBBB", 8, len(lines), 8, 0, 0, 0, 0)
        parts = ((b"IHDR", header), (b"IDAT", data[:9]), (b"IDAT", data[9:]), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body))
            for kind, body in parts
        )

    assert different_lines(png([b"\0" * 8] * 64)) == 1
    assert different_lines(png([bytes([number] * 8) for number in range(64)])) == 64
