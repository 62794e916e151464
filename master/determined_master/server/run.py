"""Reads the settings and serves in one process until it is stopped."""

from determined_master.server import startup  # imported before everything else

# isort: split
import logging
import os
import socket
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import uvloop
from sqlalchemy.exc import DBAPIError

from determined_launch.atomic_file import write_atomic
from determined_launch.out_of_space import is_out_of_space
from determined_launch.pid_lock import LockHeld, PidLock
from determined_master import logging as logs
from determined_master.auth.secrets import DamagedSecret, generated_password
from determined_master.clock import SystemClock
from determined_master.data_folder.checks import PRIVATE_UMASK, DatabaseGone, make_private
from determined_master.db.lease import DatabaseAway, DatabaseTaken
from determined_master.db.migrate import MigrationFailed
from determined_master.db.sqlite import file as sqlite_file
from determined_master.errors import StorageUnavailable
from determined_master.server.app import create_app, origin_app
from determined_master.server.http_server import Server, Sweeper, config_of, raise_descriptor_limit
from determined_master.server.origin_listeners import OriginListeners
from determined_master.settings.read_settings import SettingsError, environment, read_settings
from determined_master.settings.settings import Settings
from determined_master.wiring.services import Services, build

logger = logging.getLogger(__name__)


def run(words: Sequence[str]) -> int:
    """Serves with the settings of the command line and the environment. Returns the exit code."""
    startup.change_threads_sooner()
    startup.keep_memory_small()
    umask = os.umask(PRIVATE_UMASK)
    try:
        settings = read_settings(words, environment())
        lock = take_lock(settings.data)
    except SettingsError as error:
        print(f"det-master: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        return _unusable_folder(error)
    with lock:
        try:
            make_private(settings.data, settings.url)
            settings = _with_password(settings)
            services = build(settings, announce=partial(_announce_upgrade, settings), umask=umask)
        except (MigrationFailed, DatabaseTaken, DatabaseAway, DatabaseGone, DamagedSecret) as error:
            print(f"det-master: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            return _unusable_folder(error)
        logs.configure(settings.log_level, services.own_log, as_json=settings.log_format == "json")
        _log_certificate(settings)
        return uvloop.run(serve(services))


def _unusable_folder(error: OSError) -> int:
    """Prints a line for a data folder that cannot be used, and returns the exit code."""
    problem = "the disk is full; start the master again when there is space"
    if not is_out_of_space(error):
        problem = "the data folder cannot be used; make it writable for this user, or name another one with --data"
    print(f"det-master: {problem}: {error}", file=sys.stderr)
    return 1


def _log_certificate(settings: Settings) -> None:
    if settings.tls_cert is not None:
        from determined_master.server import tls  # a master without TLS does not load cryptography

        for is_warning, text in tls.notes(settings.tls_cert, SystemClock().now()):
            logger.log(logging.WARNING if is_warning else logging.INFO, "%s", text)


def _announce_upgrade(settings: Settings, text: str) -> None:
    """Prints the line at which `det up` extends its start timeout."""
    print(f"upgrading: {text}", file=sys.stdout if settings.announce else sys.stderr, flush=True)


def take_lock(data: Path) -> PidLock:
    """Locks the data folder for one master. Raises SettingsError, which names the pid of the other master."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return PidLock(data / "master.lock")
    except LockHeld as error:
        raise SettingsError(f"{data} is in use by another master (pid {error.pid or 'unknown'})") from error


def _with_password(settings: Settings) -> Settings:
    """Adds the first users' password: configured, kept from an earlier start, or generated; it is never printed."""
    kept = settings.data / "password"
    if settings.initial_user_password:
        return settings
    if not kept.exists():
        write_atomic(kept, generated_password() + "\n")
    return settings.model_copy(update={"initial_user_password": kept.read_text().strip()})


async def serve(services: Services) -> int:
    settings = services.settings
    # With the protocol named, asyncio sets TCP_NODELAY; without it a small answer waits 40 ms for a delayed ACK.
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        print(f"det-master: cannot listen on {settings.host}:{settings.port}: {error.strerror}", file=sys.stderr)
        return 2
    try:
        await services.begin()
    except DBAPIError as error:
        print(f"det-master: {sqlite_file.explained_at(settings.url, error.orig or error)}", file=sys.stderr)
        await services.database.close()
        return 1
    except (StorageUnavailable, DatabaseGone) as error:
        full = f"the disk of {settings.data} is full; start it again when there is space"
        is_full = isinstance(error, StorageUnavailable) and not services.storage.is_damaged
        print(f"det-master: {full if is_full else error}", file=sys.stderr)
        await services.database.close()
        return 1
    port = services.address.port = listening.getsockname()[1]
    sweeper = Sweeper(max_connections=raise_descriptor_limit())
    config = config_of(create_app(services), tls_cert=settings.tls_cert, tls_key=settings.tls_key)
    server = Server(config, services.notifications, sweeper)
    services.pages.origins.listen = OriginListeners(origin_app(services), server, settings.host).listen
    server.on_shutdown = services.pages.close
    scheme = "https" if settings.tls_cert else "http"
    server.announcement = f"ready: {scheme}://{settings.host}:{port}" if settings.announce else ""
    server.on_ready = startup.collect_from_now_on
    await server.serve(sockets=[listening])
    return 0 if server.started else 1
