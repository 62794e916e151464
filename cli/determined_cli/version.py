"""``det version``: versions of client and master."""

from argparse import Namespace
from typing import Any

from determined_cli import __version__
from determined_cli.command import Command, argument

BARE = ("version",)


def run(args: Namespace) -> None:
    """Prints client and master version. An unreachable master is reported but is not an error."""
    from determined.client import master
    from determined.errors import ApiError
    from determined_cli import connection
    from determined_cli.output import render

    url = connection.master_url(args.options)
    found: dict[str, Any] = {"client": {"version": __version__}, "master": {"url": url, "version": None}}
    try:
        facts = master.info(connection.anonymous(args.options))
        found["master"].update(version=facts.get("version"), cluster_id=facts.get("clusterId"))
    except ApiError as error:
        found["master"]["error"] = error.message
    render.show_object("json" if args.json else "yaml", found)


VERBS = (
    Command(
        "version",
        "print the versions of client and master",
        "determined_cli.version:run",
        (argument("--json", action="store_true", help="JSON"),),
    ),
)
