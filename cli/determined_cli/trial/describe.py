"""``det trial describe``: a summary of a trial, and with ``--metrics`` every report."""

import json
import sys
import textwrap
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from determined.client import experiments, lifecycle, trials
from determined.client.numbers import from_wire
from determined.metric_directions import smaller_is_better
from determined.states import exit_phrase
from determined_cli.connection import connect
from determined_cli.failures import failure_text, print_note, printable
from determined_cli.output import render
from determined_cli.output.states import display_state, without_prefix
from determined_cli.terminal.messages import say

MAX_METRICS = 40
MAX_LINE_CHARACTERS = 100
GROUP_NAMES = {"avg_metrics": "training", "validation_metrics": "validation"}
FIELDS = (
    ("Trial ID", "id"),
    ("Experiment ID", "experiment_id"),
    ("State", "state"),
    ("Activity", "runner_state"),
    ("# of Batches", "total_batches_processed"),
    ("Searcher Metric", "searcher_metric_value"),
    ("Restarts", "restarts"),
    ("Checkpoints", "checkpoint_count"),
    ("Started", "start_time"),
    ("Ended", "end_time"),
    ("H-Params", "hparams"),
)
METRICS = (
    ("Group", "group"),
    ("Metric", "name"),
    ("Last", "last"),
    ("Min", "min"),
    ("Max", "max"),
    ("Best", "best"),
    ("Reports", "count"),
)
ATTEMPTS = (
    ("Attempt", "attempt"),
    ("Agents", "agents"),
    ("Started", "started"),
    ("Ended", "ended"),
    ("Outcome", "outcome"),
)
POLICY_MATCHES = (
    ("Attempt", "attempt"),
    ("Log Policy", "policy"),
    ("First Line That Matched", "line"),
    ("What Follows", "sequel"),
)
DECISIONS = (("Time", "time"), ("Decision of the search", "reason"))
WORKLOADS = (
    ("# of Batches", "batches"),
    ("Report Time", "time"),
    ("Checkpoint", "checkpoint"),
    ("Checkpoint UUID", "uuid"),
    ("Training Metrics", "training"),
    ("Validation Metrics", "validation"),
)

OTHER_REPORTS = (("Group", "group"), ("# of Batches", "batches"), ("Report Time", "time"), ("Metrics", "metrics"))


def describe(args: Namespace) -> None:
    """Prints the trial, its attempts and the decisions of its search; with ``--metrics`` also every report."""
    session = connect(args.options)
    trial = trials.get(session, args.trial_id)
    if args.json:
        workloads = trials.workloads(session, args.trial_id, batches=args.metrics)
        attempts = lifecycle.attempts(session, args.trial_id)
        values = {
            "wandb_run": trials.wandb_run(session, args.trial_id),
            "workloads": render.snake(workloads),
            "other_reports": render.snake(trials.other_reports(session, trial)),
            "attempts": render.snake(attempts),
            "decisions": render.snake(lifecycle.trial_decisions(session, args.trial_id)),
        }
        render.show_object("json", {**render.snake(trial), **values})
        return
    render.show_fields(FIELDS, {**render.snake(trial), "state": without_prefix(display_state(trial))})
    print_note(args.trial_id, trial.get("healthWarning"))
    address = trials.wandb_run(session, args.trial_id)
    if address:
        print(f"W&B run: {printable(address)}")
    if trial.get("summaryMetrics"):
        config = experiments.get(session, int(trial["experimentId"])).get("config") or {}
        metrics = _metrics(trial["summaryMetrics"], config)
        print()
        render.show("table", METRICS, metrics[:MAX_METRICS])
        if len(metrics) > MAX_METRICS:
            say(f"showing {MAX_METRICS} of {len(metrics)} metrics; --json prints all")
    print()
    found = lifecycle.attempts(session, args.trial_id)
    _print_attempts(found)
    matches = [_policy_match(attempt, match) for attempt in found for match in attempt.get("policies", ())]
    if matches:
        print()
        render.show("table", POLICY_MATCHES, matches)
    decisions = lifecycle.trial_decisions(session, args.trial_id)
    if decisions:
        print()
        render.show("table", DECISIONS, decisions)
    if args.metrics:
        print()
        rows = [_workload(each) for each in trials.workloads(session, args.trial_id)]
        render.show("table", WORKLOADS, sorted(rows, key=lambda row: (row.get("batches") or 0, _place(row))))
        others = [_other_report(each) for each in trials.other_reports(session, trial)]
        if others:
            print()
            render.show("table", OTHER_REPORTS, others)


def _metrics(summary: dict[str, Any], config: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns one row for each metric: validations first, then training, then other groups."""
    rows = []
    for group in sorted(summary, key=lambda each: (each != "validation_metrics", each != "avg_metrics", each)):
        for name, values in sorted((summary[group] or {}).items()):
            numbers = {key: from_wire(values.get(key)) for key in ("last", "min", "max", "count")}
            smaller = smaller_is_better(config, name) if group == "validation_metrics" else None
            best = None if smaller is None else numbers["min" if smaller else "max"]
            rows.append({"group": GROUP_NAMES.get(group, group), "name": name, **numbers, "best": best})
    return rows


def _print_attempts(attempts: list[dict[str, Any]]) -> None:
    render.show("table", ATTEMPTS, [_attempt(each) for each in attempts])
    width = render.Terminal.of(sys.stdout).width
    for attempt in attempts:
        if attempt.get("failure"):
            print(f"\n{failure_text(attempt, width)}")
        if "\n" in attempt["message"]:
            text = f"attempt {attempt['runId']}: {attempt['message']}"
            print()
            for line in text.splitlines():
                print("\n".join(textwrap.wrap(line, width) or [""]) if width else line)


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


def _policy_match(attempt: dict[str, Any], match: dict[str, Any]) -> dict[str, Any]:
    return {
        "attempt": attempt["runId"],
        "policy": match["policy"].removeprefix("log policy "),
        "line": match["line"].strip()[:MAX_LINE_CHARACTERS],
        "sequel": match["sequel"],
    }


def _other_report(report: dict[str, Any]) -> dict[str, Any]:
    values = json.dumps((report.get("metrics") or {}).get("avgMetrics") or {})
    return {"group": report["group"], "batches": report["totalBatches"], "time": report["endTime"], "metrics": values}


def _place(row: Mapping[str, Any]) -> int:
    """Returns the place of a workload among those of its step: training, validation, checkpoint."""
    return next((i for i, kind in enumerate(("training", "validation", "uuid")) if kind in row), 3)


def _workload(container: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for kind in ("training", "validation", "checkpoint"):
        work = container.get(kind)
        if not work:
            continue
        row.setdefault("batches", work.get("totalBatches"))
        row.setdefault("time", work.get("endTime"))
        if kind == "checkpoint":
            row.update(checkpoint=without_prefix(work.get("state")), uuid=work.get("uuid"))
        else:
            row[kind] = json.dumps((work.get("metrics") or {}).get("avgMetrics") or {})
    return row
