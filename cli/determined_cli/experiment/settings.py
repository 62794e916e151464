"""``det experiment config`` and ``det experiment set``: shows the configuration and changes single settings."""

import sys
from argparse import Namespace
from typing import Any

from determined.client import experiments
from determined_cli import connection
from determined_cli.output import render
from determined_cli.terminal.confirmation import confirmed
from determined_cli.terminal.messages import say


def config(args: Namespace) -> None:
    """Prints the effective configuration, or with ``--original`` the submitted text. The master masks secrets."""
    experiment = experiments.get(connection.connect(args.options), args.experiment_id)
    if args.original:
        text = str(experiment["originalConfig"])
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        return
    render.show_object(args.format or "yaml", experiment.get("config") or {})


def set_name(args: Namespace) -> None:
    """Renames the experiment."""
    _change(args, {"name": args.name})
    say(f"experiment {args.experiment_id} is now named {args.name}")


def set_description(args: Namespace) -> None:
    """Sets the description; an empty text removes it."""
    _change(args, {"description": args.description})
    say(f"{'set' if args.description else 'removed'} the description of experiment {args.experiment_id}")


def set_priority(args: Namespace) -> None:
    """Sets the priority of the experiment's waiting and running trials."""
    _change(args, {"resources": {"priority": args.priority}})
    say(f"set the priority of experiment {args.experiment_id} to {args.priority}")


def set_max_slots(args: Namespace) -> None:
    """Sets or removes the limit of slots that the experiment may hold."""
    limit: int | None = args.max_slots
    _change(args, {"resources": {"maxSlots": limit}})
    say(f"set max_slots of experiment {args.experiment_id} to {'none' if limit is None else limit}")


def set_max_trials(args: Namespace) -> None:
    """Sets how many trials the running search may create."""
    _change(args, {"searcher": {"maxTrials": args.max_trials}})
    say(f"set max_trials of experiment {args.experiment_id} to {args.max_trials}")


def set_max_concurrent_trials(args: Namespace) -> None:
    """Sets how many trials of the running search train at the same time."""
    _change(args, {"searcher": {"maxConcurrentTrials": args.max_concurrent_trials}})
    say(f"set max_concurrent_trials of experiment {args.experiment_id} to {args.max_concurrent_trials}")
    if args.max_concurrent_trials:
        say("trials that already run continue if they are more")


def set_weight(args: Namespace) -> None:
    """Sets the weight of the experiment for fair-share scheduling."""
    _change(args, {"resources": {"weight": args.weight}})
    say(f"set the weight of experiment {args.experiment_id} to {args.weight:g}")


def set_gc_policy(args: Namespace) -> int:
    """Shows which checkpoints the policy would delete, and sets it after a confirmation."""
    session = connection.connect(args.options)
    policy = {name: getattr(args, name) for name in ("save_experiment_best", "save_trial_best", "save_trial_latest")}
    found = experiments.preview_gc(session, args.experiment_id, policy)
    to_remove = found["checkpoints"]
    metric = str(found["metric_name"])
    rows = [{**each, "metric": (each["ValidationMetrics"] or {}).get(metric)} for each in to_remove]
    if rows:
        fields = (("Trial ID", "TrialID"), ("# of Batches", "StepsCompleted"), (metric, "metric"), ("UUID", "UUID"))
        render.show("table", fields, rows)
        what = f"{len(rows)} checkpoint{'s' if len(rows) > 1 else ''} of experiment {args.experiment_id}"
        if not confirmed(f"Set the policy and delete {what}?", what, yes=args.yes):
            return 1
    else:
        say("no checkpoint is deleted by this policy now")
    experiments.change(session, args.experiment_id, {"checkpointStorage": {_camel(k): v for k, v in policy.items()}})
    kept = ", ".join(f"{name} {value}" for name, value in policy.items())
    say(f"set the checkpoint policy of experiment {args.experiment_id}: {kept}")
    return 0


def _change(args: Namespace, changes: dict[str, Any]) -> None:
    experiments.change(connection.connect(args.options), args.experiment_id, changes)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
