"""Commands of ``det checkpoint``."""

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.client import checkpoints, ids
from determined.client.checkpoint_archive import download_archive
from determined_cli import connection
from determined_cli.output import render
from determined_cli.output.states import display_state, without_prefix
from determined_cli.terminal.confirmation import confirmed
from determined_cli.terminal.messages import say

FIELDS = (
    ("UUID", "uuid"),
    ("State", "state"),
    ("Experiment ID", "experiment_id"),
    ("Trial ID", "trial_id"),
    ("# of Batches", "steps_completed"),
    ("Searcher Metric", "searcher_metric"),
    ("Report Time", "report_time"),
    ("Size", "size"),
    ("Not deleted", "delete_error"),
)


def describe(args: Namespace) -> None:
    """Prints one checkpoint with its metadata and files."""
    session = connection.connect(args.options)
    checkpoint = checkpoints.get(session, ids.resolve(session, "checkpoint", args.uuid))
    if args.json:
        render.show_object("json", render.snake(checkpoint))
        return
    training = checkpoint.get("training") or {}
    files = {name: int(size) for name, size in sorted((checkpoint.get("resources") or {}).items())}
    values = {
        "delete_error": None,
        **render.snake(checkpoint),
        "state": without_prefix(display_state(checkpoint)),
        "experiment_id": training.get("experimentId"),
        "trial_id": training.get("trialId"),
        "steps_completed": (checkpoint.get("metadata") or {}).get("steps_completed"),
        "searcher_metric": training.get("searcherMetric"),
        "size": sum(files.values()),
    }
    render.show_fields([field for field in FIELDS if field[1] != "delete_error" or values["delete_error"]], values)
    print()
    metadata = [{"name": key, "value": json.dumps(value)} for key, value in (checkpoint.get("metadata") or {}).items()]
    render.show("table", (("Metadata", "name"), ("Value", "value")), metadata)
    print()
    rows = [{"file": name, "size": size} for name, size in files.items() if not name.endswith("/")]
    render.show("table", (("File", "file"), ("Bytes", "size")), rows)


def download(args: Namespace) -> None:
    """Downloads a checkpoint through the master and unpacks it."""
    session = connection.connect(args.options)
    uuid = ids.resolve(session, "checkpoint", args.uuid)
    target = Path(args.output_dir or Path("checkpoints") / uuid)
    download_archive(session, uuid, target)
    print(target)


def remove(args: Namespace) -> int:
    """Deletes checkpoints after a confirmation: all of them, or none if one of them cannot be deleted."""
    session = connection.connect(args.options)
    uuids = [ids.resolve(session, "checkpoint", each) for each in args.uuid]
    number = len(uuids)
    what = f"checkpoint {uuids[0]}" if number == 1 else f"{number} checkpoints"
    if not confirmed(f"Delete {what} with all files?", what, yes=args.yes):
        return 1
    checkpoints.delete(session, uuids)
    found = [checkpoints.get(session, uuid) for uuid in uuids]
    for checkpoint in found:
        say(_outcome(checkpoint))
    return 1 if any(without_prefix(display_state(each)) == "DELETE_FAILED" for each in found) else 0


def _outcome(checkpoint: Mapping[str, Any]) -> str:
    """Returns what came of a deletion: done, failed with its reason, or under way."""
    uuid, state, task = checkpoint["uuid"], without_prefix(display_state(checkpoint)), checkpoint.get("removalTaskId")
    if state == "DELETED":
        return f"deleted checkpoint {uuid}"
    if state == "DELETE_FAILED":
        return f"checkpoint {uuid} is not deleted: {checkpoint.get('deleteError')}; delete it again to retry"
    log = f", and `det task logs {task}` what the task does" if task else ""
    return (
        f"checkpoint {uuid} is being deleted by a task, as the master does not reach its storage; "
        f"`det checkpoint describe {uuid}` shows when it is done{log}"
    )
