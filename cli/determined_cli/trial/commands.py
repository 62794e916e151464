"""Commands of ``det trial``."""

import io
import json
import tarfile
from argparse import Namespace
from operator import itemgetter
from pathlib import Path
from typing import Any

from determined.client import lifecycle, trials
from determined.client.paging import items
from determined.client.session import Session
from determined.errors import BadRequest, NotFound
from determined.states import exit_phrase
from determined_cli import connection, render
from determined_cli.failures import failure_text
from determined_cli.main import say
from determined_cli.states import displayed, shown

COLUMNS = (
    ("Trial ID", "id"),
    ("State", "state"),
    ("H-Params", "hparams"),
    ("Summary Metrics", "summary_metrics"),
    ("Started", "start_time"),
    ("Ended", "end_time"),
    ("Restarts", "restarts"),
)
WORKLOADS = (
    ("# of Batches", "batches"),
    ("Report Time", "time"),
    ("Checkpoint", "checkpoint"),
    ("Checkpoint UUID", "uuid"),
    ("Training Metrics", "training"),
    ("Validation Metrics", "validation"),
)


ATTEMPTS = (
    ("Attempt", "attempt"),
    ("Agents", "agents"),
    ("Started", "started"),
    ("Ended", "ended"),
    ("Outcome", "outcome"),
)


def describe(args: Namespace) -> None:
    """Prints the trial, its attempts and its workloads."""
    session = connection.connect(args.options)
    trial = trials.get(session, args.trial_id)
    query = {"includeBatchMetrics": True} if args.metrics else {}
    path = f"/api/v1/trials/{args.trial_id}/workloads"
    workloads = list(items(session, path, "workloads", query))
    if args.json:
        attempts = lifecycle.attempts(session, args.trial_id)
        values = {"workloads": render.snake(workloads), "attempts": render.snake(attempts)}
        render.show_object("json", {**render.snake(trial), **values})
        return
    render.show("table", COLUMNS, [{**render.snake(trial), "state": shown(displayed(trial))}])
    print()
    attempts = lifecycle.attempts(session, args.trial_id)
    render.show("table", ATTEMPTS, [_attempt(each) for each in attempts])
    for each in attempts:
        if each.get("failure"):
            print(f"\n{failure_text(each)}")
        if "\n" in each["message"]:
            print(f"\nattempt {each['runId']}: {each['message']}")
    print()
    render.show("table", WORKLOADS, [_workload(each) for each in workloads])


def _attempt(attempt: dict[str, Any]) -> dict[str, Any]:
    """Returns one row of the table of attempts; of a failure only the first line."""
    first = str(attempt.get("failure") or attempt["message"]).partition("\n")[0].rstrip(":")
    reason = exit_phrase(str(attempt["reason"]).lower())
    return {
        "attempt": attempt["runId"],
        "agents": ", ".join(f"{c['agentId']} ({len(c['slots'])})" for c in attempt["containers"]),
        "started": attempt["startedAt"],
        "ended": attempt["endedAt"],
        "outcome": ": ".join(part for part in (reason or str(attempt["state"]).lower(), first) if part),
    }


def _workload(container: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for kind in ("training", "validation", "checkpoint"):
        work = container.get(kind)
        if not work:
            continue
        row.setdefault("batches", work.get("totalBatches"))
        row.setdefault("time", work.get("endTime"))
        if kind == "checkpoint":
            row.update(checkpoint=shown(work.get("state")), uuid=work.get("uuid"))
        else:
            row[kind] = json.dumps((work.get("metrics") or {}).get("avgMetrics") or {})
    return row


def kill(args: Namespace) -> None:
    """Kills the trial; the experiment's other trials continue."""
    lifecycle.kill_trial(connection.connect(args.options), args.trial_id)
    say(f"killed trial {args.trial_id}")


def download_checkpoint(args: Namespace) -> None:
    """Downloads a checkpoint through the master and unpacks it."""
    if bool(args.best) + bool(args.latest) + bool(args.uuid) > 1:
        raise BadRequest("--best, --latest and --uuid exclude each other")
    session = connection.connect(args.options)
    uuid = args.uuid or _find_checkpoint(session, args.trial_id, latest=args.latest)
    target = Path(args.output_dir or Path("checkpoints") / uuid)
    data = session.request("GET", f"/checkpoints/{uuid}", headers={"Accept": "application/gzip"}, timeout=3600)
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(target, filter="data")
    say(f"checkpoint {uuid} of trial {args.trial_id}")
    print(target)


def _find_checkpoint(session: Session, trial_id: int, *, latest: bool) -> str:
    path = f"/api/v1/trials/{trial_id}/checkpoints"
    whole = [each for each in items(session, path, "checkpoints") if each["state"] == "STATE_COMPLETED"]
    if not whole:
        trials.get(session, trial_id)  # reports an unknown trial as such
        raise NotFound(f"trial {trial_id} has no completed checkpoint")
    if latest:
        return str(max(whole, key=_steps)["uuid"])
    experiment = session.get(f"/api/v1/experiments/{trials.get(session, trial_id)['experimentId']}")["experiment"]
    smaller = bool(((experiment.get("config") or {}).get("searcher") or {}).get("smaller_is_better", True))
    rated = [(metric, each) for each in whole if (metric := _metric(each)) is not None]
    if not rated:
        return str(max(whole, key=_steps)["uuid"])
    _, best = (min if smaller else max)(rated, key=itemgetter(0))
    return str(best["uuid"])


def _steps(checkpoint: dict[str, Any]) -> int:
    return int((checkpoint.get("metadata") or {}).get("steps_completed") or 0)


def _metric(checkpoint: dict[str, Any]) -> float | None:
    value = (checkpoint.get("training") or {}).get("searcherMetric")
    return value if isinstance(value, int | float) else None
