"""``det experiment download``: the best checkpoints of an experiment."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.client import experiments
from determined.client.checkpoint_archive import download_archive
from determined.errors import NotFound
from determined_cli import best_checkpoints, connection
from determined_cli.experiment.show import checkpoint_rows
from determined_cli.failures import counted
from determined_cli.terminal.messages import say


def download(args: Namespace) -> None:
    """Downloads the newest checkpoint or the N best checkpoints, each into a folder named by its UUID."""
    session = connection.connect(args.options)
    stored = [row for row in checkpoint_rows(session, args.experiment_id) if row["state"] == "COMPLETED"]
    if not stored:
        experiments.get(session, args.experiment_id)  # reports an unknown experiment as such
        raise NotFound(f"experiment {args.experiment_id} has no completed checkpoint")
    if args.latest:
        chosen = [max(stored, key=lambda row: str(row.get("report_time") or ""))]
    else:
        chosen, metric = _best(stored, experiments.get(session, args.experiment_id).get("config") or {}, args)
        if len(chosen) < args.best:
            say(f"only {counted(len(chosen), 'checkpoint')} with a value of {metric}")
    for row in chosen:
        target = Path(args.output_dir) / str(row["uuid"])
        download_archive(session, str(row["uuid"]), target)
        say(f"checkpoint {row['uuid']} of trial {row['trial_id']}")
        print(target)


def _best(stored: list[dict[str, Any]], config: Mapping[str, Any], args: Namespace) -> tuple[list[dict[str, Any]], str]:
    """Returns the best checkpoints and the metric that decided. Raises NotFound if none has a value."""
    searchers = str((config.get("searcher") or {}).get("metric"))
    metric = args.metric or searchers
    rows = best_checkpoints.best(stored, config, args.metric, args.goal)
    if not rows:
        whose = f"experiment {args.experiment_id}"
        raise best_checkpoints.no_best(whose, metric, stored, is_searchers=metric == searchers)
    return rows[: args.best], metric
