"""Command table of ``det master``."""

from determined_cli.command import Command, argument

NOUNS_WITHOUT_VERBS = ()

_RUN = "determined_cli.master.commands"
_FORMAT = (
    argument("--json", action="store_const", const="json", dest="format", help="JSON"),
    argument("--yaml", action="store_const", const="yaml", dest="format", help="YAML (default)"),
)

VERBS = (
    Command("info", "print the version, ID and name of the cluster", f"{_RUN}:info", _FORMAT),
    Command("config", "print the master's settings (admins only)", f"{_RUN}:config", _FORMAT, aliases=("show-config",)),
    Command(
        "open",
        "open the web page with a one-time sign-in link",
        f"{_RUN}:open_page",
        (argument("--no-browser", action="store_true", help="print the link only"),),
        examples=("det master open",),
    ),
    Command(
        "logs",
        "print the master's log",
        f"{_RUN}:logs",
        (
            argument("-f", "--follow", action="store_true", help="follow the log"),
            argument("--tail", type=int, metavar="N", help="print the last N entries"),
        ),
    ),
    Command(
        "diagnose",
        "write an archive for support (admins only)",
        "determined_cli.master.diagnose:diagnose",
        (argument("-o", "--output-dir", default=".", metavar="FOLDER", help="folder for the archive (default: .)"),),
        examples=("det master diagnose -o /tmp",),
    ),
)
