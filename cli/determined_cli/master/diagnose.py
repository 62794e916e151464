"""``det master diagnose``: collects what explains the state of a cluster, without secrets, in one archive."""

from argparse import Namespace
from collections.abc import Callable

from determined.client import master
from determined.client.paging import items
from determined.client.session import Session
from determined_cli import __version__, connection
from determined_cli.support_archive import as_json, without_secrets, write_archive
from determined_cli.terminal.messages import say


def diagnose(args: Namespace) -> None:
    """Writes the archive and prints its path. Needs an admin."""
    session = connection.connect(args.options)
    file = write_archive(args.output_dir, "det-diagnose-master", _parts(session))
    say("secrets that were recognized are masked; look through the log before you pass the archive on")
    print(file)


def _parts(session: Session) -> dict[str, Callable[[], str]]:
    return {
        "versions.json": lambda: as_json({"client": __version__, "master": master.info(session)}),
        "health.json": lambda: as_json(master.health(session)),
        "storage.json": lambda: as_json(session.get("/detent/storage")),
        "config.json": lambda: as_json(master.config(session)),
        "agents.json": lambda: as_json(list(items(session, "/api/v1/agents", "agents"))),
        "overview.json": lambda: as_json(session.get("/detent/cluster/overview")),
        "events.json": lambda: as_json(session.get("/detent/events", {"limit": 200})),
        "state.prom": lambda: _text(session, "/prom/det-state-metrics"),
        "process.prom": lambda: _text(session, "/debug/prom/metrics"),
        "master.log": lambda: without_secrets("".join(map(_line, master.logs(session, follow=False, limit=2000)))),
    }


def _text(session: Session, path: str) -> str:
    return bytes(session.get(path)).decode()


def _line(entry: dict[str, object]) -> str:
    level = str(entry.get("level") or "").removeprefix("LOG_LEVEL_")
    return f"{entry.get('timestamp')} [{level}]: {str(entry.get('message') or '').rstrip()}\n"
