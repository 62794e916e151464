"""`det-master backup`, `restore` and `migrate`: each is done completely or not at all, and errors name the cause."""

import asyncio
import errno
import sqlite3
import stat
import tarfile
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest
import zstandard
from tests.support.cluster import CONFIG, Cluster, open_cluster

from determined_launch.pid_lock import PidLock
from determined_master.__main__ import main
from determined_master.data_folder import backup
from determined_master.data_folder.backup import BackupFailed
from determined_master.db.migrate import known_revisions, newest_revision

pytestmark = pytest.mark.sqlite


def rows(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """Returns all rows of all tables."""
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr) for name in names}


def submitted(database: Path) -> set[tuple[object, ...]]:
    """Returns the columns of experiments that no loop of a live master changes."""
    with closing(sqlite3.connect(database)) as connection:
        return set(
            connection.execute(
                "SELECT id, job_id, name, config, original_config, context_hash, user_id, start_time FROM experiments"
            )
        )


def members(archive: Path) -> list[str]:
    with archive.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as plain:
        with tarfile.open(fileobj=plain, mode="r|") as tar:
            return [member.name for member in tar]


async def populate(cluster: Cluster) -> None:
    await cluster.create(CONFIG)
    cluster.master.blobs.keep_bytes(b"a context")
    checkpoint = cluster.master.settings.data / "checkpoints" / "u" / "state.bin"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(b"weights")


@pytest.fixture
async def archive(tmp_path: Path) -> Path:
    """Returns the backup of a master that has just stopped; its data folder is in ``live``."""
    (tmp_path / "live").mkdir()
    async with open_cluster(tmp_path / "live") as cluster:
        await populate(cluster)
        data = cluster.master.settings.data
        await asyncio.to_thread(backup.back_up, data, data / "master.sqlite", tmp_path / "lab.tar.zst")
    return tmp_path / "lab.tar.zst"


async def test_a_live_master_is_backed_up_and_restored_equal(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    async with open_cluster(tmp_path / "live") as cluster:
        await populate(cluster)
        data = cluster.master.settings.data
        archive = tmp_path / "lab.tar.zst"
        creating = [asyncio.create_task(cluster.create(CONFIG, activate=False)) for _ in range(10)]
        summary = await asyncio.to_thread(backup.back_up, data, data / "master.sqlite", archive, with_checkpoints=True)
        await asyncio.gather(*creating)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert summary.revision == newest_revision()
    elsewhere = tmp_path / "elsewhere" / "data"
    elsewhere.parent.mkdir()
    assert backup.restore(archive, elsewhere) == summary
    restored, live = rows(elsewhere / "master.sqlite"), rows(data / "master.sqlite")
    assert restored.keys() == live.keys()
    assert 1 <= len(restored["experiments"]) <= 11
    assert submitted(elsewhere / "master.sqlite") <= submitted(data / "master.sqlite")
    assert restored["users"] == live["users"]
    for name in ("blobs", "checkpoints/u/state.bin", "secret", "agent-token"):
        there, here = elsewhere / name, data / name
        if here.is_dir():
            assert {file.name: file.read_bytes() for file in there.iterdir()} == {
                file.name: file.read_bytes() for file in here.iterdir()
            }
        elif here.exists():
            assert there.read_bytes() == here.read_bytes()
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700
    async with open_cluster(elsewhere.parent) as second:
        listed = (await second.get("/api/v1/experiments"))["experiments"]
        assert {each["id"] for each in listed} == {row[0] for row in restored["experiments"]}


async def test_checkpoints_are_left_out_unless_they_are_asked_for(archive: Path) -> None:
    names = members(archive)
    assert names[0] == "master.sqlite"
    assert names[-1] == "manifest.json"
    assert not [name for name in names if name.startswith("checkpoints/")]
    assert [name for name in names if name.startswith("blobs/")]


async def test_restoring_a_damaged_archive_leaves_nothing(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    target = tmp_path / "new"
    for name, content in (
        ("cut", whole[: len(whole) // 2]),
        ("other", b"no archive"),
        ("changed", _with(archive, b"a context", b"A context")),
        ("manifest", _with(archive, b'{"format"', b'{{{"form"')),
    ):
        damaged = tmp_path / name
        damaged.write_bytes(content)
        with pytest.raises(BackupFailed, match=r"is damaged|is cut off|no backup"):
            backup.restore(damaged, target)
        assert not target.exists()
        assert not list(tmp_path.glob(".new*"))


def _with(archive: Path, old: bytes, new: bytes) -> bytes:
    """Returns the archive with another content, equally long."""
    plain = zstandard.ZstdDecompressor().stream_reader(archive.read_bytes()).read()
    assert plain.count(old) == 1
    return zstandard.ZstdCompressor().compress(plain.replace(old, new))


async def test_a_link_within_a_checkpoint_is_kept_and_one_that_leads_out_is_not(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    async with open_cluster(tmp_path / "live") as cluster:
        await populate(cluster)
        data = cluster.master.settings.data
        (data / "checkpoints" / "u" / "last.bin").symlink_to("state.bin")
        (data / "checkpoints" / "u" / "secret.bin").symlink_to(data / "secret")
        target = tmp_path / "whole.tar.zst"
        await asyncio.to_thread(backup.back_up, data, data / "master.sqlite", target, with_checkpoints=True)
    names = members(target)
    assert {"checkpoints/u/state.bin", "checkpoints/u/last.bin"} < set(names)
    assert "checkpoints/u/secret.bin" not in names


async def test_an_archive_of_a_newer_version_is_refused(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "newest_revision", lambda: "0001")
    with pytest.raises(BackupFailed, match="supports revisions up to 0001"):
        backup.restore(archive, tmp_path / "new")


async def test_backup_and_restore_overwrite_nothing(archive: Path, tmp_path: Path) -> None:
    data = tmp_path / "live" / "data"
    with pytest.raises(BackupFailed, match="is not empty"):
        backup.restore(archive, data)
    with pytest.raises(BackupFailed, match="exists; name another file"):
        backup.back_up(data, data / "master.sqlite", archive)


async def test_an_empty_folder_is_filled_and_not_replaced(archive: Path, tmp_path: Path) -> None:
    """It may be a mount point."""
    (tmp_path / "volume").mkdir()
    before = (tmp_path / "volume").stat().st_ino
    backup.restore(archive, tmp_path / "volume")
    assert (tmp_path / "volume").stat().st_ino == before
    assert (tmp_path / "volume" / "master.sqlite").is_file()
    assert not (tmp_path / "volume" / backup.RESTORING).exists()


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    content = tmp_path / "evil.tar"
    with tarfile.open(content, "w") as archive:
        archive.add(__file__, "../outside")
    packed = tmp_path / "evil.tar.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(content.read_bytes()))
    with pytest.raises(BackupFailed, match="unexpected member"):
        backup.restore(packed, tmp_path / "data")
    assert not (tmp_path / "outside").exists()


async def test_backup_and_restore_print_a_summary_or_the_error(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "live" / "data"
    assert main(["backup", str(tmp_path / "second.tar.zst"), "--data", str(data)]) == 0
    assert f"revision {newest_revision()}, " in capsys.readouterr().out
    assert main(["restore", str(tmp_path / "second.tar.zst"), "--data", str(tmp_path / "third")]) == 0
    assert capsys.readouterr().out.startswith(f"restored {tmp_path / 'third'}: ")
    assert main(["restore", str(tmp_path / "second.tar.zst"), "--data", str(tmp_path / "third")]) == 1
    assert capsys.readouterr().err.startswith(f"det-master: {tmp_path / 'third'} is not empty")
    away = ["--database-url", "postgresql://127.0.0.1:1/lab"]
    assert main(["backup", str(tmp_path / "x"), "--data", str(data), *away]) == 1
    error = capsys.readouterr().err
    assert error.startswith("det-master: cannot read the database: ")
    assert "port 1 failed" in error


def test_a_data_folder_that_cannot_be_made_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").touch()
    assert main(["migrate", "--data", str(tmp_path / "file" / "data")]) == 1
    assert capsys.readouterr().err == f"det-master: {tmp_path / 'file' / 'data'}: Not a directory\n"


async def test_migrate_goes_one_step_down_and_up_again(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "live" / "data"
    before = rows(data / "master.sqlite")
    assert main(["migrate", "--down", "--data", str(data)]) == 0
    assert f"the database is at revision {known_revisions()[-2]}" in capsys.readouterr().out
    assert list((data / "backups").glob(f"master-{newest_revision()}-*.sqlite"))
    assert main(["migrate", "--data", str(data)]) == 0
    assert f"the database is at revision {newest_revision()}" in capsys.readouterr().out
    assert rows(data / "master.sqlite") == before
    with PidLock(data / "master.lock"):
        assert main(["migrate", "--data", str(data)]) == 2
    assert "the master runs" in capsys.readouterr().err


async def test_an_archive_may_be_named_like_the_database(archive: Path, tmp_path: Path) -> None:
    data, target = tmp_path / "live" / "data", tmp_path / "other" / "master.sqlite"
    target.parent.mkdir()
    backup.back_up(data, data / "master.sqlite", target)
    assert backup.restore(target, tmp_path / "new").files > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["backup", "{0}/none/x.tar.zst", "--data", "{0}", "--database-url", "postgresql://127.0.0.1:1/lab"],
        ["migrate", "--data", "{0}/file/below"],
        ["add-agent", "http://lab:8080", "--data", "{0}/closed"],
    ],
    ids=lambda each: each[0],
)
def test_an_error_of_a_file_is_one_line(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "agent-token").touch()
    if arguments[0] == "add-agent":  # root may read every file
        monkeypatch.setattr(
            Path, "read_text", Mock(side_effect=PermissionError(errno.EACCES, "Permission denied", "x"))
        )
    assert main([each.format(tmp_path) for each in arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("det-master: ")
    assert error.count("\n") == 1
