"""``det experiment create --test-mode``: runs one trial with one batch on the cluster, which passes or fails."""

import random
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from determined.client import checkpoints, submissions
from determined.client.paging import items
from determined.client.session import Session
from determined.config import CheckResult, ExperimentConfig
from determined.searcher.sampling import first_point
from determined_cli import logs
from determined_cli.reconnect import Reconnector
from determined_cli.terminal.messages import INTERRUPTED, say

if TYPE_CHECKING:
    from determined.context import ContextArchive
from determined_cli.output.states import display_state, has_ended, without_prefix

POLL_SECONDS = 0.2


def reduced(submitted: Mapping[str, Any], config: ExperimentConfig) -> str:
    """Returns the configuration of the test: one batch, one validation, sampled hyperparameters, no restarts."""
    data = dict(submitted)
    searcher = config.to_json()["searcher"]
    storage = data.get("checkpoint_storage")
    rng = random.Random(config.reproducibility.experiment_seed)
    kept = dict.fromkeys(("save_experiment_best", "save_trial_best", "save_trial_latest"), 0)
    data |= {
        "description": f"[test-mode] {data.get('description') or ''}".strip(),
        "scheduling_unit": 1,
        "min_validation_period": {"batches": 1},
        "max_restarts": 0,
        "hyperparameters": first_point(config.hyperparameters, searcher, rng),
        "searcher": {
            "name": "single",
            "metric": searcher["metric"],
            "smaller_is_better": searcher.get("smaller_is_better", True),
            "max_length": {"batches": 1},
        },
    }
    if isinstance(storage, dict):
        data["checkpoint_storage"] = {**storage, **kept}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def submit(session: Session, body: dict[str, Any], packed: "ContextArchive", checked: CheckResult) -> int:
    """Validates the configuration as it is, creates the reduced experiment, and returns its id."""
    session.post("/api/v1/experiments", {**body, "validateOnly": True})
    assert checked.config is not None
    reduced_body = {**body, "config": reduced(checked.submitted, checked.config), "activate": True}
    answer = submissions.create(session, reduced_body, packed)
    return int(answer["experiment"]["id"])


def watch(session: Session, experiment_id: int) -> int:
    """Prints the progress until the test ends. Returns 0 if it passed, else 1 after printing the log."""
    reconnector = Reconnector(session)
    reconnector.connected()  # the experiment was just created
    try:
        state, trial_id = _until_end(reconnector, experiment_id)
    except KeyboardInterrupt:
        say(f"detached; the test continues as experiment {experiment_id}. To stop it: det e kill {experiment_id}")
        return INTERRUPTED
    if state == "COMPLETED":
        _remove_checkpoints(session, experiment_id)
        say("test passed")
        return 0
    if trial_id is not None:
        for line in logs.lines(session, trial_id):
            print(logs.message(line, short=sys.stdout.isatty()), end="")
    say(f"test failed: experiment {experiment_id} ended: {state}")
    return 1


def _until_end(reconnector: Reconnector, experiment_id: int) -> tuple[str, int | None]:
    session, last, trial_id = reconnector.session, "", None
    path = f"/api/v1/experiments/{experiment_id}"
    while True:
        trials = reconnector.call(lambda: list(items(session, f"{path}/trials", "trials", limit=1)))
        experiment = reconnector.call(lambda: session.get(path)["experiment"])
        line = f"experiment {experiment_id}: {without_prefix(display_state(experiment)).lower()}"
        if trials:
            trial_id = int(trials[0]["id"])
            line = _progress(trials[0])
        if line != last:
            say(line)
            last = line
        if has_ended(experiment["state"]):
            return without_prefix(experiment["state"]), trial_id
        time.sleep(POLL_SECONDS)


def _progress(trial: dict[str, Any]) -> str:
    parts = [f"trial {trial['id']}: {without_prefix(display_state(trial)).lower()}"]
    if trial.get("runnerState"):
        parts.append(str(trial["runnerState"]))
    steps, stored = int(trial.get("totalBatchesProcessed") or 0), int(trial.get("checkpointCount") or 0)
    parts += [f"{steps} batches"] * bool(steps) + [f"{stored} checkpoints"] * bool(stored)
    return ", ".join(parts)


def _remove_checkpoints(session: Session, experiment_id: int) -> None:
    """Deletes the checkpoints of a passed test."""
    found = items(session, f"/api/v1/experiments/{experiment_id}/checkpoints", "checkpoints")
    uuids = [str(each["uuid"]) for each in found if each["state"] == "STATE_COMPLETED"]
    if uuids:
        checkpoints.delete(session, uuids)
