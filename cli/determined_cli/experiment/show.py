"""Commands that display experiments."""

import base64
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from determined.client import experiments, lifecycle, trials, users
from determined.client.paging import items
from determined.client.session import Session
from determined_cli import best_checkpoints, connection
from determined_cli.experiment import search
from determined_cli.experiment.best_trial import print_best_of_goals, print_best_trial
from determined_cli.experiment.hyperparameters import with_hyperparameters
from determined_cli.failures import WIDTH, counted, print_failure, print_note, printable, shorten
from determined_cli.output import render
from determined_cli.output.row_selection import chosen_columns, select
from determined_cli.output.states import display_state, without_prefix
from determined_cli.pool_accounts import say_payers
from determined_cli.terminal.messages import say

DEFAULT_PAGE = 200
RECENT_SECONDS = 3600
"""Failures of this time are printed below a list."""
COLUMNS = (
    ("ID", "id"),
    ("Owner", "username"),
    ("Name", "name"),
    ("Parent ID", "forked_from"),
    ("State", "state"),
    ("Progress", "progress"),
    ("Start Time", "start_time"),
    ("End Time", "end_time"),
    ("Resource Pool", "resource_pool"),
    ("Labels", "labels"),
    ("Archived", "archived"),
)
DESCRIBED = (
    *((title.replace("Start Time", "Submitted"), key) for title, key in COLUMNS),
    ("Waited", "waited"),
    ("Ran", "ran"),
)
TRIALS = (
    ("Trial ID", "id"),
    ("State", "state"),
    ("Searcher Metric", "searcher_metric_value"),
    ("# of Batches", "total_batches_processed"),
    ("H-Params", "hparams"),
    ("Restarts", "restarts"),
    ("Started", "start_time"),
    ("Ended", "end_time"),
)
MAX_WANDB_RUNS = 8
"""Experiments with more trials are described without the addresses of their runs, which are in each trial's log."""
CHECKPOINTS = (
    ("Trial ID", "trial_id"),
    ("# of Batches", "steps_completed"),
    ("State", "state"),
    ("Searcher Metric", "searcher_metric"),
    ("UUID", "uuid"),
    ("Size", "size"),
    ("Report Time", "report_time"),
)


DECISIONS = (
    ("Time", "time"),
    ("Trial ID", "trial_id"),
    ("Bracket", "bracket"),
    ("Decision", "reason"),
)


def list_experiments(args: Namespace) -> None:
    """Lists the user's own experiments that are not archived, or all."""
    session = connection.connect(args.options)
    owner = None if args.all else str(users.me(session)["username"])
    columns = COLUMNS if args.all else COLUMNS[:-1]
    chosen = chosen_columns(args, columns)
    limit = None if args.pages == "all" else args.limit or (DEFAULT_PAGE if args.pages == "one" else None)
    if args.filter or args.sort:
        question = search.question_of(args, columns, owner=owner)
        experiments_found, total = search.search(session, question, offset=args.offset, limit=limit)
        part, is_part = f"{limit} of {total}", limit is not None and total > args.offset + limit
    else:
        more = None if limit is None else limit + 1  # shows whether there are others
        experiments_found = _newest(session, owner, offset=args.offset, limit=more)
        part, is_part = f"the newest {limit}", len(experiments_found) == more
        experiments_found = experiments_found[:limit]
    rows = [_row(each, args.format) for each in experiments_found]
    if is_part:
        say(f"showing {part}; omit --limit to show all")
    render.show(args.format, chosen, rows)
    say_payers(session, args, rows)
    if args.format == "table":
        _say_notes(rows)
        if not rows and not args.all:
            what = "no experiment of yours matches" if args.filter else "you have no experiments"
            say(f"{what}; `det experiment list -a` shows those of all users, and archived ones")


def _say_notes(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints why experiments failed lately, and what is odd about those that run. Older failures would be below every
    list."""
    since = datetime.now(UTC) - timedelta(seconds=RECENT_SECONDS)
    for row in rows:
        if row.get("failure") and (not row.get("end_time") or datetime.fromisoformat(row["end_time"]) > since):
            say(shorten(f"experiment {row['id']} failed: {row['failure']}", WIDTH))
        if row.get("health_note"):
            say(shorten(f"experiment {row['id']}: {row['health_note']}", WIDTH))


def _newest(session: Session, owner: str | None, *, offset: int, limit: int | None) -> list[dict[str, Any]]:
    query: dict[str, Any] = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_DESC"}
    if owner is not None:
        query.update(archived=False, users=[owner])
    return list(items(session, "/api/v1/experiments", "experiments", query, limit=limit, offset=offset))


def _row(experiment: dict[str, Any], kind: str) -> dict[str, Any]:
    row = {**render.snake(experiment), "state": without_prefix(display_state(experiment))}
    if kind == "table":
        progress = row.get("progress")
        row["progress"] = "" if progress is None else f"{float(progress) * 100:.1f}%"
        row["labels"] = ", ".join(row.get("labels") or [])
    return row


def _times(described: dict[str, Any]) -> dict[str, str]:
    """Returns how long an experiment waited and ran, as in ``1:02:03``."""
    return {name: str(timedelta(seconds=round(described[f"{name}_seconds"]))) for name in ("waited", "ran")}


def describe(args: Namespace) -> None:
    """Prints each experiment with its trials and checkpoints; with ``--decisions`` also those of its search."""
    session = connection.connect(args.options)
    described = [_describe(session, each, args) for each in args.experiment_id]
    if args.format in ("json", "yaml"):
        render.show_object(args.format, [each for each, _ in described])
    else:
        _show_described(args, described)
        say_payers(session, args, [each for each, _ in described])


def _describe(session: Session, experiment_id: int, args: Namespace) -> tuple[dict[str, Any], str]:
    """Returns an experiment with all that ``describe`` shows of it, and why it failed if none of its attempts did."""
    experiment = render.snake(experiments.get(session, experiment_id))
    experiment["state"] = without_prefix(display_state(experiment))
    status: dict[str, Any] = session.get(f"/detent/experiments/{experiment_id}/status")
    experiment |= {"waited_seconds": status["waitedSeconds"], "ran_seconds": status["ranSeconds"]}
    experiment["failure"] = (status.get("failure") or {}).get("text")
    experiment["trials"] = _described_trials(session, experiment_id, status, with_workloads=args.metrics)
    experiment["checkpoints"] = checkpoint_rows(session, experiment_id)
    experiment["code"] = _described_code(session, experiment_id)
    if args.decisions:
        experiment["decisions"] = render.snake(lifecycle.search_decisions(session, experiment_id))
    text = str(status.get("text") or "")
    if experiment["failure"] is None and text.startswith("failed: "):
        experiment["failure"] = text.removeprefix("failed: ")
        return experiment, f"experiment {experiment_id} {text}"
    return experiment, ""


def _described_code(session: Session, experiment_id: int) -> dict[str, Any] | None:
    """Returns the state of the code without the changes, which `det experiment diff` and the page show."""
    code = experiments.code(session, experiment_id, with_diff=False)
    return None if code is None else {key: value for key, value in render.snake(code).items() if key != "diff"}


def _described_trials(
    session: Session, experiment_id: int, status: Mapping[str, Any], *, with_workloads: bool
) -> list[dict[str, Any]]:
    notes = {trial["trialId"]: trial.get("note") for trial in status.get("trials", ())}
    rows = _trials(session, experiment_id)
    for trial in rows:
        trial["note"] = notes.get(trial["id"])
        if len(rows) <= MAX_WANDB_RUNS:
            trial["wandb_run"] = trials.wandb_run(session, trial["id"])
        if with_workloads:
            trial["workloads"] = render.snake(trials.workloads(session, trial["id"]))
    return rows


def _show_described(args: Namespace, described: Sequence[tuple[dict[str, Any], str]]) -> None:
    """Prints the tables of experiments, and below them the causes of failures."""
    whole = [each for each, _ in described]
    render.show(args.format, DESCRIBED, [_row(each, args.format) | _times(each) for each in whole])
    print()
    rows = [trial for each in whole for trial in each["trials"]]
    render.show(args.format, *(with_hyperparameters(TRIALS, rows) if args.format == "table" else (TRIALS, rows)))
    print()
    render.show(args.format, CHECKPOINTS, [checkpoint for each in whole for checkpoint in each["checkpoints"]])
    if args.decisions:
        print()
        render.show(args.format, DECISIONS, [decision for each in whole for decision in each["decisions"]])
    if args.format == "table":
        for reason in filter(None, (reason for _, reason in described)):
            say(reason)
        for each in whole:
            _print_causes(each)


def _print_causes(experiment: dict[str, Any]) -> None:
    if experiment["code"]:
        print(f"\ncode of experiment {experiment['id']}: {_code_line(experiment['code'])}")
    for trial in experiment["trials"]:
        if trial.get("wandb_run"):
            print(f"W&B run of trial {trial['id']}: {printable(trial['wandb_run'])}")
        print_failure(trial, experiment["config"].get("max_restarts", 0))
        print_note(trial["id"], trial["note"])
    print_best_trial(experiment)
    print_best_of_goals(experiment)


def _code_line(code: Mapping[str, Any]) -> str:
    """Returns the state of the code on one line: commit, branch, whether there were changes, and the remote."""
    commit = f"commit {code['commit']}" if code["commit"] else "no commit"
    branch = f" on {code['branch']}" if code["branch"] else ""
    changes = ", with uncommitted changes" if code["is_dirty"] else ""
    part = ", stored only in part" if code["is_cut"] else ""
    untracked = f", {counted(len(code['untracked']), 'untracked file')}" if code["untracked"] else ""
    remote = f" ({code['remote']})" if code["remote"] else ""
    return printable(f"{commit}{branch}{changes}{untracked}{part}{remote}")


def list_trials(args: Namespace) -> None:
    """Lists the trials by id."""
    session = connection.connect(args.options)
    rows = _trials(session, args.experiment_id)
    columns, found = select(args, TRIALS, rows)
    if args.format == "table" and not args.columns:
        columns, found = with_hyperparameters(columns, found)
    render.show(args.format, columns, found)


def list_checkpoints(args: Namespace) -> None:
    """Lists the checkpoints, newest last or best first."""
    session = connection.connect(args.options)
    rows = checkpoint_rows(session, args.experiment_id)
    if args.metric:
        rows = [{**row, "metric": best_checkpoints.reported(row).get(args.metric)} for row in rows]
    if args.best is not None:
        config = experiments.get(session, args.experiment_id).get("config") or {}
        rows = best_checkpoints.best(rows, config, args.metric, args.goal)[: args.best]
    columns = [
        (args.metric, "metric") if args.metric and key == "searcher_metric" else (title, key)
        for title, key in CHECKPOINTS
    ]
    render.show(args.format, *select(args, columns, rows))


def download_model_def(args: Namespace) -> None:
    """Writes the experiment's context as tar.gz and prints the path."""
    session = connection.connect(args.options)
    experiment = experiments.get(session, args.experiment_id)
    name = re.sub(r"[^\w.()-]", "_", str(experiment["name"]))[:50]
    target = Path(args.output_dir)
    target.mkdir(parents=True, exist_ok=True)
    file = target / f"exp{args.experiment_id}_{name}_model_def.tar.gz"
    file.write_bytes(base64.b64decode(lifecycle.model_definition(session, args.experiment_id)))
    print(file)


def _trials(session: Session, experiment_id: int) -> list[dict[str, Any]]:
    found = items(session, f"/api/v1/experiments/{experiment_id}/trials", "trials")
    rows = [{**render.snake(trial), "state": without_prefix(display_state(trial))} for trial in found]
    return sorted(rows, key=lambda row: int(row["id"]))


def checkpoint_rows(session: Session, experiment_id: int) -> list[dict[str, Any]]:
    """Returns the checkpoints of an experiment by trial and step."""
    rows = []
    for checkpoint in items(session, f"/api/v1/experiments/{experiment_id}/checkpoints", "checkpoints"):
        training = checkpoint.get("training") or {}
        resources = checkpoint.get("resources") or {}
        rows.append(
            {
                **render.snake(checkpoint),
                "trial_id": training.get("trialId"),
                "steps_completed": (checkpoint.get("metadata") or {}).get("steps_completed"),
                "state": without_prefix(checkpoint["state"]),
                "searcher_metric": training.get("searcherMetric"),
                "size": sum(int(size) for size in resources.values()),
            }
        )
    return sorted(rows, key=lambda row: (int(row["trial_id"] or 0), int(row["steps_completed"] or 0)))
