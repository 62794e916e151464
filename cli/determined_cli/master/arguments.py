"""Command table of ``det master``."""

from determined_cli.command import Command, argument

BARE = ()

_RUN = "determined_cli.master.commands"
_FORMAT = (
    argument("--json", action="store_const", const="json", dest="format", help="JSON"),
    argument("--yaml", action="store_const", const="yaml", dest="format", help="YAML (default)"),
)

VERBS = (
    Command("info", "version, cluster id, name", f"{_RUN}:info", _FORMAT),
    Command("config", "the master's settings; for admins", f"{_RUN}:config", _FORMAT, aliases=("show-config",)),
    Command(
        "open",
        "a link to the page that signs you in, once, within 10 minutes",
        f"{_RUN}:open_page",
        (argument("--no-browser", action="store_true", help="only print the link"),),
        examples=("det master open",),
    ),
    Command(
        "logs",
        "the master's own log",
        f"{_RUN}:logs",
        (
            argument("-f", "--follow", action="store_true", help="go on as it grows"),
            argument("--tail", type=int, metavar="N", help="the last N entries"),
        ),
    ),
)
