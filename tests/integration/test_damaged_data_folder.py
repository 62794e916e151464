"""Missing, damaged or read-only parts of the data folder: the master names the part and the remedy in one line."""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import open_cluster
from tests.support.small_disk import SmallDisk, disk_fixture

from determined_master.__main__ import main
from determined_master.auth.secrets import DamagedSecret, Secrets
from determined_master.data_folder.checks import DatabaseGone
from determined_master.db import migrate

pytestmark = pytest.mark.sqlite

disk = disk_fixture("16m", "made/data")


@pytest.mark.parametrize("name", ["secret", "agent-token", "operator-token"])
@pytest.mark.parametrize("content", ["", "\n", "abc", "\x00" * 64], ids=["empty", "blank", "short", "zeros"])
def test_a_damaged_secret_is_refused_and_not_replaced(tmp_path: Path, name: str, content: str) -> None:
    Secrets.load(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(DamagedSecret, match=rf"{name} is damaged: .* remove it and start the master again"):
        Secrets.load(tmp_path)
    assert (tmp_path / name).read_text() == content


async def test_a_database_that_is_gone_does_not_become_a_new_cluster(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        cluster_id = cluster.master.identity.cluster_id
    data = tmp_path / "data"
    for file in data.glob("master.sqlite*"):
        file.unlink()
    with pytest.raises(DatabaseGone, match=rf"master\.sqlite is gone, and .* belongs to cluster {cluster_id}"):
        build_master(data)
    assert not (data / "master.sqlite").exists()
    (data / "cluster-id").unlink()
    async with open_cluster(tmp_path) as cluster:
        assert (data / "cluster-id").read_text().strip() == cluster.master.identity.cluster_id


async def test_the_database_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async with open_cluster(tmp_path):
        pass
    data = tmp_path / "data"
    with closing(sqlite3.connect(data / "master.sqlite")) as connection:
        connection.execute("UPDATE cluster SET cluster_id = 'another'")
        connection.commit()
    with pytest.raises(DatabaseGone, match="the database is not that of cluster"):
        async with open_cluster(tmp_path):
            pass


def build_master(data: Path) -> None:
    from determined_master.settings.settings import Settings
    from determined_master.wiring.services import build

    build(Settings(data=data))


async def test_a_damaged_page_of_the_database_is_reported_by_health(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_cluster(tmp_path) as cluster:
        for _ in range(3):
            await cluster.create()
    file = tmp_path / "data" / "master.sqlite"
    damage(file, "experiments")
    async with open_cluster(tmp_path) as cluster:
        answer = await cluster.client.get("/api/v1/experiments")
        assert answer.status_code == 503
        assert "The master's database is damaged" in answer.json()["error"]["error"]
        health = await cluster.client.get("/health")
        assert health.status_code == 503
        assert health.json()["database"] == "damaged"
        assert "restore" in health.json()["advice"]
    assert f"{file} is damaged" in caplog.text
    assert "move the file and cluster-id of the data folder away" in caplog.text


def damage(file: Path, table: str) -> None:
    """Overwrites the first page of a table."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(b"\xff" * size)


def test_a_read_only_data_folder_is_reported_in_one_line(disk: SmallDisk, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk.path)], check=True)
    try:
        assert main(["--data", str(disk.path)]) == 1
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk.path)], check=False)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("det-master: the data folder cannot be used; make it writable for this user")
    assert "Read-only file system" in line


def test_a_data_folder_below_a_file_is_reported_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["--data", str(tmp_path / "file" / "data")]) == 1
    assert "the data folder cannot be used" in capsys.readouterr().err


def test_the_url_of_a_database_is_no_argument_of_its_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of the machine can read the arguments of a program."""
    commands: list[list[str]] = []
    run = subprocess.run

    def record(argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        commands.append(argv)
        return run(argv, **options)

    monkeypatch.setattr(migrate.subprocess, "run", record)
    file = tmp_path / "lab.sqlite"
    migrate.bring_up(f"sqlite:///{file}")
    assert file.stat().st_size > 0
    assert commands
    assert not any("lab.sqlite" in word for argv in commands for word in argv)
