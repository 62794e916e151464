"""Command table of ``det agent``."""

from determined_cli.command import Command, argument, listing

BARE = ()

_RUN = "determined_cli.agent.commands"
_WHICH = (
    argument("agent_id", nargs="?", metavar="AGENT_ID"),
    argument("--all", action="store_true", help="every agent"),
)

VERBS = (
    Command("list", "all agents", f"{_RUN}:list_agents", (listing,), aliases=("ls",)),
    Command("enable", "let an agent take work again", f"{_RUN}:enable", _WHICH),
    Command(
        "disable",
        "no new work for an agent; what runs there ends",
        f"{_RUN}:disable",
        (*_WHICH, argument("--drain", action="store_true", help="what runs there goes on")),
    ),
)
