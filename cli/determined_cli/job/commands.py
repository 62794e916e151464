"""Commands of ``det job``."""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from determined.client import ids, jobs
from determined.client.session import Session
from determined.errors import BadRequest
from determined_cli import connection
from determined_cli.failures import counted
from determined_cli.output import render
from determined_cli.output.row_selection import select
from determined_cli.pool_accounts import say_payers
from determined_cli.terminal.messages import say

COLUMNS = (
    ("#", "place"),
    ("Job ID", "job_id"),
    ("Type", "type"),
    ("ID", "entity_id"),
    ("Name", "name"),
    ("Priority", "priority"),
    ("Weight", "weight"),
    ("Slots", "slots"),
    ("State", "state"),
    ("User", "username"),
    ("Submitted", "submission_time"),
)
KEYS = {
    "priority": ("priority", int),
    "weight": ("weight", float),
    "resource-pool": ("resourcePool", str),
    "ahead-of": ("aheadOf", str),
    "behind": ("behindOf", str),
}


def list_jobs(args: Namespace) -> None:
    """Lists the queue of a pool."""
    session = connection.connect(args.options)
    rows = [
        {
            **render.snake({key: each[key] for key in ("jobId", "entityId", "name", "priority", "weight", "username")}),
            "resource_pool": each.get("resourcePool"),
            "place": number,
            "type": str(each["type"]).removeprefix("TYPE_").lower(),
            "slots": f"{each['allocatedSlots']}/{each['requestedSlots']}",
            "state": str(each["summary"]["state"]).removeprefix("STATE_").lower(),
            "submission_time": each["submissionTime"],
        }
        for number, each in enumerate(jobs.queue(session, args.resource_pool or ""), 1)
    ]
    render.show(args.format, *select(args, COLUMNS, rows))
    say_payers(session, args, rows)


def update(args: Namespace) -> None:
    """Changes one job."""
    change: dict[str, Any] = {
        "jobId": args.job_id,
        "priority": args.priority,
        "weight": args.weight,
        "resourcePool": args.resource_pool,
        "aheadOf": args.ahead_of,
        "behindOf": args.behind,
    }
    given = {key: value for key, value in change.items() if value is not None}
    if len(given) == 1:
        raise BadRequest("nothing to change; give --priority, --weight, --resource-pool, --ahead-of or --behind")
    session = connection.connect(args.options)
    _apply(session, _resolved(session, [given]), is_dry_run=args.dry_run)


def update_batch(args: Namespace) -> None:
    """Changes several jobs, all or none."""
    changes: dict[str, dict[str, Any]] = {}
    for text in args.updates:
        job_id, key, value = _parsed(text)
        changes.setdefault(job_id, {"jobId": job_id})[key] = value
    session = connection.connect(args.options)
    _apply(session, _resolved(session, changes.values()), is_dry_run=args.dry_run)


def _resolved(session: Session, changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Completes the ids of jobs."""
    keys = ("jobId", "aheadOf", "behindOf")
    return [
        {key: ids.resolve(session, "job", value) if key in keys else value for key, value in change.items()}
        for change in changes
    ]


def _parsed(text: str) -> tuple[str, str, object]:
    """Returns job, key of the API and value of ``JOB_ID.KEY=VALUE``."""
    target, equals, value = text.partition("=")
    job_id, dot, name = target.rpartition(".")
    if not equals or not dot or name not in KEYS:
        raise BadRequest(f"{text!r} is not JOB_ID.KEY=VALUE with a KEY of {', '.join(KEYS)}")
    key, kind = KEYS[name]
    try:
        return job_id, key, kind(value)
    except ValueError:
        raise BadRequest(f"{text!r}: {value!r} is not a number") from None


def _apply(session: Session, changes: list[dict[str, Any]], *, is_dry_run: bool) -> None:
    for done in jobs.update(session, changes, dry_run=is_dry_run):
        say(_sentence(done, is_dry_run=is_dry_run))


def _sentence(done: Mapping[str, Any], *, is_dry_run: bool) -> str:
    verb = "would change" if is_dry_run else "changed"
    text = f"{verb} {', '.join(done['fields'])} of job {done['jobId']}"
    passed = done["passed"]
    return text + (f"; it {'would pass' if is_dry_run else 'passed'} {counted(len(passed), 'job')}" if passed else "")
