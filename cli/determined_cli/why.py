"""``det why``: why work waits, when it is expected to start, and which change alone would start it now."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from determined_cli.command import Command, argument

NOUNS_WITHOUT_VERBS = ("why",)
MAX_SHOWN = 6
_WHY = {
    "limit": "counts for the same limit",
    "ahead": "comes first and waits for the same slots",
    "leaving": "is saving and leaves its slots to it",
    "running": "holds slots that it could use",
}


def run(args: Namespace) -> None:
    """Explains why an experiment, a trial or a task waits; of what has ended it prints the cause."""
    from determined.client import jobs
    from determined_cli import connection
    from determined_cli.failures import printable
    from determined_cli.output import render

    session = connection.connect(args.options)
    found = jobs.why(session, args.id, is_trial=args.trial)
    if args.json:
        render.show_object("json", found)
        return
    for line in lines(found):
        sys.stdout.write(f"{printable(line)}\n")


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yields the explanation, a sentence for each fact."""
    yield from _wait(found)
    for note in found.get("notes", ()):
        yield f"slow starts: {note}"


def _wait(wait: Mapping[str, Any]) -> Iterator[str]:
    first = wait["first"]
    if first is None:
        yield f"{wait['subject']}: {wait['text']}" if wait["text"] else f"{wait['subject']} does not wait for slots"
        return
    more = f" ({wait['waiting']} of its trials wait)" if wait["waiting"] > 1 else ""
    yield f"{wait['subject']} waits{more}: {first['reason']}"
    place = "is first" if not first["ahead"] else f"has {first['ahead']} ahead"
    yield f"place: it {place} in the queue of pool {first['pool']}, with priority {first['priority']}"
    for each in first["blockers"][:MAX_SHOWN]:
        left = "" if each["secondsLeft"] is None else f", for about {duration(each['secondsLeft'])} more"
        yield f"in its way: {each['name']} {_WHY[each['why']]}{left}"
    if len(first["blockers"]) > MAX_SHOWN:
        yield f"in its way: {len(first['blockers']) - MAX_SHOWN} more"
    seconds = first["startsInSeconds"]
    yield f"expected start: {first['unknown']}" if seconds is None else f"expected start: in about {duration(seconds)}"
    changes = list(_changes(first["changes"], first))
    yield from changes or ["no single change starts it now"]


def _changes(changes: Mapping[str, Any], first: Mapping[str, Any]) -> Iterator[str]:
    start = "starts it now:"
    if changes["slots"]:
        yield f"{start} {counted(changes['slots'])} instead of {first['slots']} (resources.slots_per_trial)"
    if changes["priority"]:
        yield f"{start} priority {changes['priority']} (det job update)"
    if changes["maxSlots"]:
        yield f"{start} max_slots {changes['maxSlots']} (det experiment set max-slots)"
    for pool in changes["pools"][:MAX_SHOWN]:
        yield f"{start} pool {pool} (det job update --resource-pool {pool})"
    for agent in changes["agents"][:MAX_SHOWN]:
        yield f"{start} det agent enable {agent}"
    for slot in changes["slotIds"][:MAX_SHOWN]:
        yield f"{start} det slot enable {slot['agentId']} {slot['slotId']}"
    for job in changes["pausedJobs"][:MAX_SHOWN]:
        yield f"{start} pausing {job['name']}, once it has left"


def counted(slots: int) -> str:
    return f"{slots} slot{'s' if slots != 1 else ''}"


def duration(seconds: float) -> str:
    """Returns a duration in words.

    >>> duration(45), duration(3700)
    ('45 s', '1 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


VERBS = (
    Command(
        "why",
        "say why something waits and what would start it",
        "determined_cli.why:run",
        (
            argument("id", metavar="ID", help="an experiment, or the id of a task or job"),
            argument("--trial", action="store_true", help="ID is a trial"),
            argument("--json", action="store_true", help="JSON"),
        ),
        examples=("det why 12", "det why --trial 40"),
    ),
)
