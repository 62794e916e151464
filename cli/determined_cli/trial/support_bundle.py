"""``det trial support-bundle``: collects what is needed to explain a trial, without secrets, in one archive."""

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from determined.client import experiments, lifecycle, master, trials
from determined.client.session import Session
from determined.config.masking import masked, masked_text
from determined_cli import __version__, connection, logs
from determined_cli.support_archive import as_json, without_secrets, write_archive
from determined_cli.terminal.messages import say


def support_bundle(args: Namespace) -> None:
    """Writes the archive and prints its path."""
    session = connection.connect(args.options)
    trial = trials.get(session, args.trial_id)
    file = write_archive(args.output_dir, f"det-bundle-trial-{args.trial_id}", _parts(session, trial))
    say("secrets that were recognized are masked; look through the log before you pass the archive on")
    print(file)


def _parts(session: Session, trial: dict[str, Any]) -> dict[str, Callable[[], str]]:
    trial_id, experiment_id = int(trial["id"]), int(trial["experimentId"])
    return {
        "versions.json": lambda: as_json({"client": __version__, "master": master.info(session)}),
        "trial.json": lambda: as_json(trial),
        "attempts.json": lambda: as_json(lifecycle.attempts(session, trial_id)),
        "experiment.json": lambda: as_json(_experiment(session, experiment_id)),
        "metrics.json": lambda: as_json([*trials.workloads(session, trial_id), *trials.other_reports(session, trial)]),
        "log.txt": lambda: without_secrets("".join(map(logs.message, logs.lines(session, trial_id)))),
    }


def _experiment(session: Session, experiment_id: int) -> dict[str, Any]:
    found = experiments.get(session, experiment_id)
    found["config"] = masked(found.get("config") or {})
    found["originalConfig"] = masked_text(str(found.get("originalConfig") or ""))
    return found
