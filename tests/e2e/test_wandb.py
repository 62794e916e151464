"""Weights & Biases in a real trial: one run over a pause, with its address shown."""

import subprocess
import venv

import pytest
import yaml
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

from determined.client import submissions, trials
from determined.context import pack

pytestmark = pytest.mark.e2e

SCRIPT = """
import json, os, sys, time
from pathlib import Path

import determined as det

gate = Path(sys.argv[1])
with det.core.init() as core:
    print("variables", json.dumps({n: v for n, v in os.environ.items() if n.startswith("WANDB_RUN") or "RESUME" in n}))
    if len(sys.argv) > 2:
        import wandb

        run = wandb.init(project="lab", dir=gate)
        run.log({"loss": 1})
        run.finish()
        print("named", run.id)
    else:
        print("wandb: View run at https://wandb.example/lab/runs/" + os.environ["WANDB_RUN_ID"])
    if not (gate / "here").exists():
        (gate / "here").touch()
        while not core.preempt.should_preempt():
            time.sleep(0.02)
"""


def paused_and_activated(cluster, tmp_path, *words, **settings):
    """Runs the script in two attempts and returns the experiment."""
    gate, folder = tmp_path / "gate", tmp_path / "context"
    for path in (gate, folder):
        path.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    config = {
        "name": "wandb",
        "entrypoint": " ".join(["python3", "train.py", str(gate), *words]),
        "searcher": {"name": "single", "metric": "loss"},
        "environment": settings,
    }
    body = {"config": yaml.safe_dump(config), "configName": "wandb.yaml", "activate": True}
    experiment = Experiment(cluster, int(submissions.create(cluster.session, body, pack(folder))["experiment"]["id"]))
    wait_until((gate / "here").exists, within=60, what="the first attempt waits")
    experiment.pause()
    experiment.do("activate")
    experiment.ended()
    return experiment


def values_after(log, word):
    return [line.partition(f"{word} ")[2].strip() for line in log if f"{word} " in line]


def test_both_attempts_of_a_paused_trial_have_the_same_run(cluster, tmp_path):
    experiment = paused_and_activated(cluster, tmp_path)
    first, second = values_after(experiment.log, "variables")
    run_id = f"trial-{experiment.trial_id}-{cluster.cluster_id[:8]}"
    assert first == second
    assert yaml.safe_load(first) == {
        "WANDB_RUN_ID": run_id,
        "WANDB_RESUME": "allow",
        "WANDB_RUN_GROUP": f"experiment-{experiment.id}-{cluster.cluster_id[:8]}",
    }
    address = trials.wandb_run(cluster.session, experiment.trial_id)
    assert address == f"https://wandb.example/lab/runs/{run_id}"


@pytest.mark.long
def test_wandb_itself_continues_its_run_after_a_pause(cluster, tmp_path):
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    subprocess.run([environment / "bin" / "pip", "install", "-q", "wandb"], check=True)
    offline = {"image": f"venv:{environment}", "environment_variables": ["WANDB_MODE=offline"]}
    experiment = paused_and_activated(cluster, tmp_path, "wandb", **offline)
    first, second = values_after(experiment.log, "named")
    assert first == second == f"trial-{experiment.trial_id}-{cluster.cluster_id[:8]}"
    folders = list((tmp_path / "gate" / "wandb").glob("offline-run-*"))
    assert len(folders) == 2  # one for each attempt, which `wandb sync` merges
    assert {path.name.partition("-trial-")[2] for path in folders} == {first.removeprefix("trial-")}
