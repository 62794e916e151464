"""Upgrades of the database: interrupted or out of space, they change nothing; a backup is made before."""

import os
import resource
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, event
from tests.integration.test_migrations import insert_whole

from determined_master.db.engine import make_migration_engine, sqlite_url
from determined_master.db.migrate import MigrationFailed, bring_up, known_revisions, newest_revision, upgrade
from determined_master.db.sqlite import file as sqlite_file

pytestmark = [pytest.mark.sqlite, pytest.mark.budget(40, "upgrades databases on disks that fill")]

REVISIONS = known_revisions()[:-1]
EXTRA_POINTS = 2
"""Points before and after the commit, in addition to one before each statement."""
BIG_ROWS = 400


def make_database(path: Path, revision: str) -> None:
    """Creates a database at ``revision`` with rows in every table that has parents or is changed later."""
    engine = make_migration_engine(sqlite_url(path))
    upgrade(engine, revision)
    rows: list[tuple[str, dict[str, object]]] = [
        ("users", {"id": 1, "username": "u", "display_name": "", "password_hash": "", "modified_at": 0}),
        ("workspaces", {"id": 1, "name": "w", "user_id": 1}),
        ("projects", {"id": 1, "workspace_id": 1, "name": "p", "key": "", "description": "", "user_id": 1}),
        (
            "experiments",
            {
                "id": 1,
                "job_id": "1",
                "labels": '["a", "b"]',
                "state": "COMPLETED",
                "user_id": 1,
                "project_id": 1,
                "config": "{}",
            },
        ),
        ("trials", {"id": 1, "experiment_id": 1, "request_id": "r", "task_id": "t", "state": "COMPLETED"}),
        ("allocations", {"id": "t.1", "task_id": "t", "spec": "{}"}),
        *(("task_logs", {"id": n, "task_id": "t", "log": "x" * 1000, "level": "ERROR"}) for n in range(BIG_ROWS)),
    ]
    with engine.begin() as connection:
        for table, values in rows:
            insert_whole(connection, table, values)
    engine.dispose()


def content(path: Path) -> list[str]:
    """Returns all rows and definitions, sorted because the indexes of a rebuilt table come in no fixed order."""
    with sqlite3.connect(path) as connection:
        lines = sorted(connection.iterdump())
    connection.close()
    return lines


def in_child(work: Callable[[], None]) -> int:
    """Runs ``work`` in a forked process; returns its exit code: 0, or 1 if it raised."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_at(engine: Engine, point: int) -> None:
    """Ends the process like SIGKILL before the statement number ``point``; the commit counts as two."""
    passed = 0

    def count(*_: object, **__: object) -> None:
        nonlocal passed
        if passed == point:
            os._exit(9)
        passed += 1

    event.listen(engine, "before_cursor_execute", count)
    event.listen(engine, "commit", count)


def count_statements(path: Path) -> int:
    """Returns the number of statements that an upgrade of a copy takes."""
    copy = path.with_name("counted")
    copy.write_bytes(path.read_bytes())
    engine = make_migration_engine(sqlite_url(copy))
    executed: list[object] = []
    event.listen(engine, "before_cursor_execute", lambda *_: executed.append(1))
    upgrade(engine)
    engine.dispose()
    return len(executed)


def cut_off_everywhere(tmp_path: Path, revision: str | None, every: int) -> list[int]:
    """Interrupts an upgrade at every ``every``-th point; returns the points after which the next start loses something."""
    start, cut = tmp_path / "start", tmp_path / "cut"
    start.touch()
    if revision is not None:
        make_database(start, revision)
    points = range(0, count_statements(start) + EXTRA_POINTS, every)
    whole = content(tmp_path / "counted")
    broken = []
    for point in points:
        for file in tmp_path.glob("cut*"):
            file.unlink()
        cut.write_bytes(start.read_bytes())

        def interrupted(point: int = point) -> None:
            engine = make_migration_engine(sqlite_url(cut))
            kill_at(engine, point)
            upgrade(engine)

        assert in_child(interrupted) in (0, 9)
        if in_child(lambda: upgrade(make_migration_engine(sqlite_url(cut)))) or content(cut) != whole:
            broken.append(point)
    return broken


@pytest.mark.parametrize("revision", [REVISIONS[0], REVISIONS[-1]])  # all of them in the long form below
def test_an_upgrade_that_was_cut_off_is_done_by_the_next_start(tmp_path: Path, revision: str | None):
    assert cut_off_everywhere(tmp_path, revision, every=60) == []


@pytest.mark.long
@pytest.mark.parametrize("revision", [None, *REVISIONS])
def test_an_upgrade_that_was_cut_off_at_any_statement_is_done_by_the_next_start(tmp_path: Path, revision: str | None):
    assert cut_off_everywhere(tmp_path, revision, every=1) == []


@pytest.mark.parametrize(
    ("revision", "every", "least"),
    [
        pytest.param("0001", 1, 3, marks=pytest.mark.long),
        pytest.param("0003", 1, 3, marks=pytest.mark.long),
        ("0003", 3, 2),
    ],
)
def test_a_full_disk_leaves_the_old_database_and_the_next_start_upgrades_it(
    tmp_path: Path, revision: str, every: int, least: int
):
    """Fills the disk at ten sizes, or at every third of them, of which at least ``least`` are too small."""
    start = tmp_path / "start"
    make_database(start, revision)
    whole_size = _upgraded(start, tmp_path / "whole").stat().st_size
    whole = content(tmp_path / "whole")
    failed = 0
    for part in range(0, 10, every):
        path = tmp_path / f"{part}" / "master.sqlite"
        path.parent.mkdir()
        path.write_bytes(start.read_bytes())
        failed += bool(in_child(lambda p=path, n=part: _bring_up_with_room(p, whole_size * (n + 1) // 10)))
        assert content(path) in (content(start), whole)
        bring_up(sqlite_url(path))
        assert content(path) == whole
    assert failed >= least


def _upgraded(start: Path, path: Path) -> Path:
    path.write_bytes(start.read_bytes())
    upgrade(make_migration_engine(sqlite_url(path)))
    return path


def _bring_up_with_room(path: Path, size: int) -> None:
    """Upgrades a database while the kernel limits files to ``size`` bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    bring_up(sqlite_url(path))


def test_a_new_database_needs_no_backup_and_an_upgrade_makes_a_private_one(tmp_path: Path):
    new = tmp_path / "new" / "master.sqlite"
    new.parent.mkdir()
    bring_up(sqlite_url(new))
    assert not sqlite_file.backup_folder(new).exists()
    old = tmp_path / "master.sqlite"
    make_database(old, "0002")
    before = content(old)
    messages: list[str] = []
    bring_up(sqlite_url(old), messages.append)
    ((revision, backup),) = sqlite_file.backups(old)
    assert (revision, content(backup)) == ("0002", before)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(backup.parent.stat().st_mode) == 0o700
    assert messages == [f"the database, from revision 0002 to {newest_revision()}"]
    bring_up(sqlite_url(old), messages.append)
    assert len(messages) == len(sqlite_file.backups(old)) == 1


def test_the_newest_backup_of_each_of_the_last_revisions_is_kept(tmp_path: Path):
    path = tmp_path / "master.sqlite"
    make_database(path, "0001")
    folder = sqlite_file.backup_folder(path)
    folder.mkdir()
    for name in ("0001-20250101T000000Z", "0002-20250102T000000Z", "0003-20250103T000000Z", "0002-20250104T000000Z"):
        (folder / f"master-{name}.sqlite").touch()
    (folder / "mine.txt").touch()
    created = sqlite_file.back_up(path, "0004")
    assert sqlite_file.backups(path)[0] == ("0004", created)
    assert [revision for revision, _ in sqlite_file.backups(path)] == ["0004", "0002", "0003"]
    assert sorted(each.name for each in folder.iterdir() if not each.name.startswith("master-")) == ["mine.txt"]


def test_an_upgrade_without_room_for_the_backup_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "master.sqlite"
    make_database(path, "0002")
    before = path.read_bytes()
    monkeypatch.setattr(sqlite_file.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1 << 16}))
    with pytest.raises(MigrationFailed, match=r"master\.sqlite cannot be backed up .* nothing was changed"):
        bring_up(sqlite_url(path))
    assert path.read_bytes() == before


def start_master(data: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "determined_master", "--data", str(data), "--port", "0"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False)


def _newer(path: Path) -> None:
    bring_up(sqlite_url(path))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    folder = sqlite_file.backup_folder(path)
    folder.mkdir()
    for name in ("0002-20250102T000000Z", "9998-20250103T000000Z"):
        (folder / f"master-{name}.sqlite").touch()


def _truncated(path: Path) -> None:
    make_database(path, "0002")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _interrupted_by_an_old_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE agents (id INTEGER)")
    connection.close()


def _damaged_inside(path: Path) -> None:
    make_database(path, "0002")
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * (path.stat().st_size - 8192))


def _damaged_at_the_newest_revision(path: Path) -> None:
    bring_up(sqlite_url(path))
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'cluster'").fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek(4096 * (root - 1))
        file.write(b"\xff" * 4096)


UNUSABLE: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "newer": (
        _newer,
        ("at revision 9999", newest_revision(), "install the version", "master-0002-20250102T000000Z.sqlite"),
    ),
    "no database": (lambda path: path.write_text("a letter"), ("is not a database", "move the file and cluster-id")),
    "cut short": (_truncated, ("is damaged", "there is no backup", "move the file and cluster-id")),
    "damaged at the newest revision": (_damaged_at_the_newest_revision, ("is damaged", "there is no backup")),
    "damaged inside": (_damaged_inside, ("is damaged", "there is no backup")),
    "without a revision": (
        _interrupted_by_an_old_version,
        ("has tables but no revision", "move the file and cluster-id"),
    ),
    "a folder": (lambda path: path.mkdir(), ("cannot read",)),
}


@pytest.mark.parametrize(
    "name",
    [name if name in ("newer", "damaged inside") else pytest.param(name, marks=pytest.mark.long) for name in UNUSABLE],
)
def test_a_database_that_cannot_be_used_is_named_with_the_remedy(tmp_path: Path, name: str):
    make, words = UNUSABLE[name]
    path = tmp_path / "master.sqlite"
    make(path)
    done = start_master(tmp_path)
    assert done.returncode == 1
    *logged, line = done.stderr.strip().splitlines()
    assert line.startswith("det-master: ")
    assert len(logged) == (name == "damaged at the newest revision")  # what the running master logs as well
    assert [word for word in (str(path), *words) if word not in done.stderr] == []


def test_det_up_says_what_is_wrong_with_the_database(tmp_path: Path):
    _newer(tmp_path / "master.sqlite")
    argv = [sys.executable, "-P", "-m", "determined_cli", "up", "--port", "0", "--data", str(tmp_path)]
    environment = os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False, env=environment)
    assert done.returncode != 0
    assert "at revision 9999" in done.stderr
    assert "Traceback" not in done.stderr
