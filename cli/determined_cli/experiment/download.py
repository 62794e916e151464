"""``det experiment download``: the best checkpoints of an experiment."""

from argparse import Namespace
from pathlib import Path

from determined.client import experiments
from determined.client.checkpoint_archive import download_archive
from determined.errors import NotFound
from determined_cli import best_checkpoints, connection
from determined_cli.experiment.show import checkpoint_rows
from determined_cli.failures import counted
from determined_cli.main import say


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
        searcher = (experiments.get(session, args.experiment_id).get("config") or {}).get("searcher") or {}
        chosen = best_checkpoints.best(stored, smaller=bool(searcher.get("smaller_is_better", True)))[: args.best]
        if not chosen:
            raise best_checkpoints.no_best(f"experiment {args.experiment_id}", str(searcher.get("metric")), stored)
        if len(chosen) < args.best:
            say(f"only {counted(len(chosen), 'checkpoint')} with a value of {searcher.get('metric')}")
    for row in chosen:
        target = Path(args.output_dir) / str(row["uuid"])
        download_archive(session, str(row["uuid"]), target)
        say(f"checkpoint {row['uuid']} of trial {row['trial_id']}")
        print(target)
