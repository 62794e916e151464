"""``det slot``: what trials run on."""

from determined_cli.verbs import Verb, argument, listing

BARE = ()

_RUN = "determined_cli.agent_verbs"
_WHICH = (argument("agent_id", metavar="AGENT_ID"), argument("slot_id", metavar="SLOT_ID"))

VERBS = (
    Verb("list", "all slots, and what holds them", f"{_RUN}:list_slots", (listing,), aliases=("ls",)),
    Verb("enable", "let a slot be used again", f"{_RUN}:enable_slot", _WHICH),
    Verb("disable", "no new work for a slot", f"{_RUN}:disable_slot", _WHICH),
)
