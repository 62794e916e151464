"""Commands of ``det trial``."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from determined.client import experiments, ids, lifecycle, outputs, trials
from determined.client.checkpoint_archive import download_archive
from determined.client.paging import items
from determined.client.session import Session
from determined.errors import BadRequest, NotFound
from determined_cli import best_checkpoints, connection
from determined_cli.terminal.messages import say


def kill(args: Namespace) -> None:
    """Kills the trial; the experiment's other trials continue."""
    lifecycle.kill_trial(connection.connect(args.options), args.trial_id)
    say(f"killed trial {args.trial_id}")


def download_checkpoint(args: Namespace) -> None:
    """Downloads a checkpoint or the outputs through the master and unpacks them."""
    if bool(args.best) + bool(args.latest) + bool(args.uuid) + bool(args.outputs) > 1:
        raise BadRequest("--best, --latest, --uuid and --outputs exclude each other")
    session = connection.connect(args.options)
    if args.outputs:
        found = outputs.of_trial(session, int(trials.get(session, args.trial_id)["experimentId"]), args.trial_id)
        target = Path(args.output_dir or Path("outputs") / f"trial-{args.trial_id}")
        outputs.download(session, found["uuid"], target)
        print(target)
        return
    given = ids.resolve(session, "checkpoint", args.uuid) if args.uuid else None
    uuid = given or _find_checkpoint(session, args.trial_id, latest=args.latest, best=args.best)
    target = Path(args.output_dir or Path("checkpoints") / uuid)
    download_archive(session, uuid, target)
    say(f"checkpoint {uuid} of trial {args.trial_id}")
    print(target)


def _find_checkpoint(session: Session, trial_id: int, *, latest: bool, best: bool) -> str:
    """Returns the best checkpoint; the newest one if there is no best and ``best`` does not require it."""
    path = f"/api/v1/trials/{trial_id}/checkpoints"
    stored = [each for each in items(session, path, "checkpoints") if each["state"] == "STATE_COMPLETED"]
    if not stored:
        trials.get(session, trial_id)  # reports an unknown trial as such
        raise NotFound(f"trial {trial_id} has no completed checkpoint")
    newest = str(max(stored, key=_steps)["uuid"])
    if latest:
        return newest
    config = experiments.get(session, int(trials.get(session, trial_id)["experimentId"])).get("config") or {}
    searcher = config.get("searcher") or {}
    rows = [{**each, "searcher_metric": (each.get("training") or {}).get("searcherMetric")} for each in stored]
    ranked = best_checkpoints.best(rows, config)
    if ranked:
        return str(ranked[0]["uuid"])
    error = best_checkpoints.no_best(f"trial {trial_id}", str(searcher.get("metric")), _training(stored))
    if best:
        raise error
    say(f"{error.message.partition('. ')[0]}; downloading the newest one")
    return newest


def _training(checkpoints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the parts of the checkpoints that name the reported validation metrics."""
    found = [(each.get("training") or {}).get("validationMetrics") for each in checkpoints]
    return [{"training": {"validation_metrics": each}} for each in found]


def _steps(checkpoint: dict[str, Any]) -> int:
    return int((checkpoint.get("metadata") or {}).get("steps_completed") or 0)
