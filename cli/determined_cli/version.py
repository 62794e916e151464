"""``det version``: versions of client and master."""

from argparse import Namespace
from typing import Any

from determined_cli import __version__
from determined_cli.command import Command, argument

NOUNS_WITHOUT_VERBS = ("version",)


def run(args: Namespace) -> None:
    """Prints client and master version. An unreachable master is reported but is not an error."""
    from determined.client import master
    from determined.errors import ApiError
    from determined_cli import connection
    from determined_cli.output import render

    url = connection.master_url(args.options)
    versions: dict[str, Any] = {"client": {"version": __version__}, "master": {"url": url, "version": None}}
    try:
        facts = master.info(connection.anonymous(args.options))
        versions["master"].update(version=facts.get("version"), cluster_id=facts.get("clusterId"))
    except ApiError as error:
        versions["master"]["error"] = error.message
    render.show_object("json" if args.json else "yaml", versions)


VERBS = (
    Command(
        "version",
        "print the versions of client and master",
        "determined_cli.version:run",
        (argument("--json", action="store_true", help="JSON"),),
    ),
)
