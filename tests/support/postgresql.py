"""A temporary PostgreSQL server, and databases copied from a template that the migrations built once."""

import contextlib
import functools
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool
from tests.support.free_ports import free_port

from determined_master.db.migrate import bring_up
from determined_master.settings.database_url import normalized

VARIABLE = "DETENT_TEST_POSTGRESQL"
"""URL of the server for the masters of the tests. Without it they run on SQLite."""
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""For tests of queries. Tests of crashes need the server's default settings."""
_USER = "postgres"
_numbers = itertools.count()


class Server:
    """A server on a free port of 127.0.0.1, without passwords. If root runs the tests, the server runs as its own user,
    so its folder is outside the private folders of the tests.

    Parameters:
        settings: settings of the server that differ from its defaults.
    """

    def __init__(self, **settings: str) -> None:
        programs()  # skips the test if PostgreSQL is not installed
        self.folder = Path(tempfile.mkdtemp(prefix="detent-postgresql-"))
        self.port = free_port()
        if os.geteuid() == 0:
            shutil.chown(self.folder, _USER)
        self._run("initdb", "-D", "data", "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        values = {"listen_addresses": "127.0.0.1", "port": str(self.port), "max_connections": "200"} | settings
        lines = [f"{name} = '{value}'" for name, value in values.items()] + [
            f"unix_socket_directories = '{self.folder}'"
        ]
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write("\n".join(["", *lines, ""]))

    @property
    def url(self) -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "60", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stops the server. ``immediate``: like a crash."""
        self._run("pg_ctl", "-D", "data", "-m", mode, "-w", "stop")

    def close(self) -> None:
        """Stops the server if it runs, and removes its folder."""
        with contextlib.suppress(RuntimeError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def create(self, name: str) -> str:
        """Creates an empty database and returns its URL."""
        _execute(self.url, f"CREATE DATABASE {name}")
        return _with_name(self.url, name)

    def _run(self, program: str, *arguments: str) -> None:
        as_user = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
        with (self.folder / "said").open("a+") as output:  # a pipe would stay open in the server
            done = subprocess.run(
                [*as_user, str(programs() / program), *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            )
            output.seek(0)
            if done.returncode:
                raise RuntimeError(f"{program} failed: {output.read()[-2000:]}")


def programs() -> Path:
    """Returns the folder of PostgreSQL's programs. Skips the test if there is none."""
    initdb_paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not initdb_paths:
        pytest.skip("PostgreSQL is not installed (make debian adds it)")
    if os.geteuid() == 0:
        pwd.getpwnam(_USER)
    return initdb_paths[-1].parent


def fresh_database(server: str) -> str:
    """Returns the URL of a new database with the newest tables and no rows."""
    template = _template(server)
    name = f"{template}_{next(_numbers)}"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    return _with_name(server, name)


@functools.cache
def _template(server: str) -> str:
    name = f"detent_{os.getpid()}"
    _execute(server, f"CREATE DATABASE {name}")
    bring_up(_with_name(server, name))
    return name


def _with_name(server: str, name: str) -> str:
    return make_url(normalized(server)).set(database=name).render_as_string(hide_password=False)


def _execute(server: str, *statements: str) -> None:
    engine = create_engine(normalized(server), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()
