"""``det experiment download``: the best checkpoints of an experiment, or what the scripts of its trials wrote."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.client import experiments, outputs
from determined.client.checkpoint_archive import download_archive
from determined.client.session import Session
from determined.errors import BadRequest, NotFound
from determined_cli import best_checkpoints, connection
from determined_cli.experiment.show import checkpoint_rows
from determined_cli.failures import counted
from determined_cli.terminal.messages import say


def download(args: Namespace) -> None:
    """Downloads the newest checkpoint or the N best ones, each into a folder named by its UUID, or the outputs."""
    session = connection.connect(args.options)
    if args.outputs:
        if args.latest or args.metric or args.best != 1:
            raise BadRequest("--outputs excludes --best, --latest and --metric: each trial has its newest outputs only")
        _download_outputs(session, args.experiment_id, Path(args.output_dir or "outputs"))
        return
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
        target = Path(args.output_dir or "checkpoints") / str(row["uuid"])
        download_archive(session, str(row["uuid"]), target)
        say(f"checkpoint {row['uuid']} of trial {row['trial_id']}")
        print(target)


def _download_outputs(session: Session, experiment_id: int, folder: Path) -> None:
    """Downloads the outputs of all trials, each into a folder of its own. Raises NotFound if there are none."""
    is_empty = True
    for found in outputs.of_experiment(session, experiment_id):
        is_empty = False
        target = folder / f"trial-{found['trialId']}"
        outputs.download(session, found["uuid"], target)
        say(f"trial {found['trialId']}: {counted(found['files'], 'file')}")
        print(target)
    if is_empty:
        raise NotFound(
            f"experiment {experiment_id} has no outputs: its configuration names none, or no attempt has ended yet"
        )


def _best(stored: list[dict[str, Any]], config: Mapping[str, Any], args: Namespace) -> tuple[list[dict[str, Any]], str]:
    """Returns the best checkpoints and the metric that decided. Raises NotFound if none has a value."""
    searchers = str((config.get("searcher") or {}).get("metric"))
    metric = args.metric or searchers
    rows = best_checkpoints.best(stored, config, args.metric, args.goal)
    if not rows:
        whose = f"experiment {args.experiment_id}"
        raise best_checkpoints.no_best(whose, metric, stored, is_searchers=metric == searchers)
    return rows[: args.best], metric
