"""Verbs of ``det-master`` beside serving: ``backup``, ``restore``, ``migrate``, ``copy-database`` and ``add-agent``."""

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from determined.link.master_folder import AGENT_TOKEN
from determined_launch.pid_lock import LockHeld, PidLock
from determined_master.data_folder import backup
from determined_master.db import copying
from determined_master.db.engine import make_migration_engine, sqlite_url
from determined_master.db.lease import DatabaseAway, DatabaseTaken, Lease
from determined_master.db.migrate import MigrationFailed, bring_up, downgrade, known_revisions, revision_of
from determined_master.db.sqlite import file as sqlite_file
from determined_master.settings.database_url import is_postgresql, is_sqlite, usable_url
from determined_master.settings.read_settings import SettingsError, environment, read_settings
from determined_master.settings.settings import Settings


def back_up(argv: Sequence[str]) -> int:
    """Runs ``det-master backup``."""
    parser = _parser("backup", "Writes the database, the contexts and the secrets of a master into one archive.")
    parser.add_argument("file", type=Path, metavar="FILE", help="archive to write, for instance lab.tar.zst")
    parser.add_argument("--checkpoints", action="store_true", help="include the checkpoints of the data folder")
    args, others = parser.parse_known_args(argv)

    def work(settings: Settings) -> str:
        with _as_sqlite(settings.url, args.file.absolute().parent) as file:
            made = backup.back_up(settings.data, file, args.file.absolute(), with_checkpoints=args.checkpoints)
        return f"wrote {args.file}: revision {made.revision}, {made.files} files, {made.size >> 20} MiB"

    return _run(work, others)


def restore(argv: Sequence[str]) -> int:
    """Runs ``det-master restore``."""
    parser = _parser("restore", "Makes a data folder of an archive that `det-master backup` has written.")
    parser.add_argument("file", type=Path, metavar="FILE", help="the archive")
    args, others = parser.parse_known_args(argv)

    def work(settings: Settings) -> str:
        made = backup.restore(args.file.absolute(), settings.data)
        if is_postgresql(settings.url):
            _move_rows(settings)
        return f"restored {settings.data}: revision {made.revision}, {made.files} files, {made.size >> 20} MiB"

    return _run(work, others)


def add_agent(argv: Sequence[str]) -> int:
    """Runs ``det-master add-agent``."""
    parser = _parser("add-agent", "Prints the command that adds another machine by docker-compose.agent.yml.")
    parser.add_argument("url", metavar="URL", help="the master's address as that machine reaches it")
    args, others = parser.parse_known_args(argv)

    def work(settings: Settings) -> str:
        parts = urlsplit(args.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{args.url!r} is no address of a master; one is http://192.168.1.10:8080")
        if parts.hostname in ("127.0.0.1", "localhost", "::1"):
            raise SettingsError(f"{args.url} leads another machine to itself; give an address of the network")
        token = settings.data / AGENT_TOKEN
        if not token.is_file():
            raise SettingsError(f"{settings.data} holds no {AGENT_TOKEN}: no master has started there yet")
        start = f"DETENT_MASTER={shlex.quote(args.url)} docker-compose --file docker-compose.agent.yml up --detach"
        return f"(umask 077; echo {shlex.quote(token.read_text().strip())} > {AGENT_TOKEN}); {start}"

    return _run(work, others)


@contextmanager
def _as_sqlite(url: str, beside: Path) -> Iterator[Path]:
    """Yields the SQLite file of a database; that of another kind is copied in one frozen view, to a folder in
    ``beside``."""
    own = sqlite_file.file_of(url)
    if own is not None:
        yield own
        return
    with tempfile.TemporaryDirectory(dir=beside, prefix=".det-copy-") as folder:
        file = Path(folder) / backup.DATABASE
        copying.copy_database(url, sqlite_url(file))
        yield file


def _move_rows(settings: Settings) -> None:
    """Moves the rows of a restored SQLite file into the PostgreSQL database of the settings. Where that fails nothing
    of the restore is left."""
    file = settings.data / backup.DATABASE
    try:
        bring_up(sqlite_url(file))
        with ExitStack() as locks:
            _lock(settings.url, locks)
            copying.copy_database(sqlite_url(file), settings.url)
    except BaseException:
        shutil.rmtree(settings.data, ignore_errors=True)  # of a mount point, its files
        raise
    for each in settings.data.glob(f"{file.name}*"):
        each.unlink()


def migrate(argv: Sequence[str]) -> int:
    """Runs ``det-master migrate``."""
    parser = _parser("migrate", "Upgrades the database of a master that does not run, after a backup.")
    parser.add_argument("--down", action="store_true", help="go back by one revision, for an older version")
    args, others = parser.parse_known_args(argv)

    def work(settings: Settings) -> str:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        with PidLock(settings.data / "master.lock"), ExitStack() as locks:
            if not is_sqlite(settings.url):
                _lock(settings.url, locks)
            if args.down:
                _one_down(settings.url)
            else:
                bring_up(settings.url)
            engine = make_migration_engine(settings.url)
            try:
                return f"the database is at revision {revision_of(engine)}"
            finally:
                engine.dispose()

    return _run(work, others)


def copy_database(argv: Sequence[str]) -> int:
    """Runs ``det-master copy-database``."""
    parser = argparse.ArgumentParser(
        prog="det-master copy-database",
        description="Copies the rows of one database into another, empty one, and counts them table by table.",
        epilog="The master must not run. Afterwards start it with --database-url TARGET and its old data folder.",
    )
    parser.add_argument("source", metavar="SOURCE", help="sqlite:////path/to/master.sqlite, or a PostgreSQL URL")
    parser.add_argument("target", metavar="TARGET", help="postgresql://user:password@host/database")
    args = parser.parse_args(argv)

    def work() -> str:
        source, target = usable_url(args.source), usable_url(args.target)
        with ExitStack() as locks:
            for url in (source, target):
                _lock(url, locks)
            rows = copying.copy_database(source, target, lambda table, rows: print(f"{table:24} {rows:12} rows"))
        return f"copied {rows} rows"

    return _explained(work)


def _lock(url: str, locks: ExitStack) -> None:
    """Keeps masters away from a database until ``locks`` are closed. Raises LockHeld, DatabaseTaken, DatabaseAway."""
    file = sqlite_file.file_of(url)
    if file is not None:
        if file.parent.is_dir():
            locks.enter_context(PidLock(file.parent / "master.lock"))
        return
    lease = Lease(url)
    locks.callback(lease.release)
    lease.acquire()


def _one_down(url: str) -> None:
    engine = make_migration_engine(url)
    try:
        revision = revision_of(engine)
        known = known_revisions()
        if revision not in known[1:]:
            raise MigrationFailed(f"the database is at revision {revision or 'none'}; there is no step down from there")
        file = sqlite_file.file_of(url)
        if file is not None:
            sqlite_file.back_up(file, revision)
        downgrade(engine, known[known.index(revision) - 1])
    finally:
        engine.dispose()


def _parser(verb: str, text: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"det-master {verb}",
        description=text,
        epilog="--config, --data and --database-url choose the master, as they do for det-master itself.",
    )


def _run(work: Callable[[Settings], str], others: Sequence[str]) -> int:
    """Prints what ``work`` returns, or one line about why it failed; returns the exit code."""
    return _explained(lambda: work(read_settings(others, environment())))


def _explained(work: Callable[[], str]) -> int:
    try:
        print(work())
    except (SettingsError, ValueError) as error:
        print(f"det-master: {error}", file=sys.stderr)
        return 2
    except LockHeld as error:
        print(f"det-master: the master runs (pid {error.pid or 'unknown'}); stop it first", file=sys.stderr)
        return 2
    except DatabaseTaken as error:
        print(f"det-master: {error}; stop it first", file=sys.stderr)
        return 2
    except _FAILURES as error:
        print(f"det-master: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"det-master: {place}{error.strerror or error}", file=sys.stderr)
        return 1
    return 0


_FAILURES = (
    backup.BackupFailed,
    copying.CopyFailed,
    DatabaseAway,
    MigrationFailed,
    sqlite_file.DatabaseUnusable,
)
