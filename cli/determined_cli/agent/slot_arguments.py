"""Command table of ``det slot``. The table of nouns imports one module per noun."""

from determined_cli.command import Command, argument, listing

BARE = ()

_RUN = "determined_cli.agent.commands"
_WHICH = (argument("agent_id", metavar="AGENT_ID"), argument("slot_id", metavar="SLOT_ID"))

VERBS = (
    Command("list", "all slots, and what holds them", f"{_RUN}:list_slots", (listing,), aliases=("ls",)),
    Command("enable", "let a slot be used again", f"{_RUN}:enable_slot", _WHICH),
    Command("disable", "no new work for a slot", f"{_RUN}:disable_slot", _WHICH),
)
