"""Hashes of files in one block and in several, and hashes of earlier versions."""

import hashlib
from pathlib import Path

import pytest

from determined.errors import StorageError
from determined.storage import hashes

UUID = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(hashes, "CHUNK_BYTES", 300)


@pytest.mark.parametrize("size", [0, 1, 300, 999, 1000])
def test_a_file_of_one_block_has_its_sha256(tmp_path: Path, size: int):
    content = bytes(range(256)) * 4
    (tmp_path / "a").write_bytes(content[:size])
    assert hashes.digest(tmp_path / "a") == hashlib.sha256(content[:size]).hexdigest()


@pytest.mark.parametrize("size", [1001, 1999, 2000, 5432])
def test_a_change_of_any_block_of_a_file_changes_its_hash(tmp_path: Path, size: int):
    content = bytearray(b"x" * size)
    file = tmp_path / "a"
    file.write_bytes(content)
    expected = {"a": hashes.digest(file)}
    blocks = [hashlib.sha256(content[start : start + 1000]).digest() for start in range(0, size, 1000)]
    assert expected["a"] == "sha256-64MiB:" + hashlib.sha256(b"".join(blocks)).hexdigest()
    hashes.verify(tmp_path, ["a"], expected, UUID)
    for position in (0, 999, 1000, size - 1):
        file.write_bytes(content[:position] + b"y" + content[position + 1 :])
        with pytest.raises(StorageError, match="a has changed since it was stored"):
            hashes.verify(tmp_path, ["a"], expected, UUID)
    file.write_bytes(content[:-1])
    with pytest.raises(StorageError, match="a has changed"):
        hashes.verify(tmp_path, ["a"], expected, UUID)


def test_a_large_file_of_an_earlier_version_is_verified_by_one_hash(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"x" * 5432)
    hashes.verify(tmp_path, ["a"], {"a": hashlib.sha256(b"x" * 5432).hexdigest()}, UUID)
    with pytest.raises(StorageError):
        hashes.verify(tmp_path, ["a"], {"a": hashlib.sha256(b"y" * 5432).hexdigest()}, UUID)
