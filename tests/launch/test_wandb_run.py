"""The variables for Weights & Biases: the same run for all attempts of a trial, on its chief, unless the user says so."""

import json
import sys

import pytest
from tests.launch.test_workers import run

from determined_launch import wandb_run

TRIAL = {"DET_CLUSTER_ID": "6f1d0c9e-22", "DET_TRIAL_ID": "7", "DET_EXPERIMENT_ID": "2"}
GIVEN = {
    "WANDB_RUN_ID": "trial-7-6f1d0c9e",
    "WANDB_RESUME": "allow",
    "WANDB_RUN_GROUP": "experiment-2-6f1d0c9e",
}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (TRIAL, GIVEN),
        ({"DET_CLUSTER_ID": "6f1d0c9e-22", "DET_TASK_ID": "command"}, {}),
        (TRIAL | {"WANDB_RUN_ID": "mine"}, {"WANDB_RUN_GROUP": GIVEN["WANDB_RUN_GROUP"]}),
        (TRIAL | {"WANDB_RESUME": "never"}, {"WANDB_RUN_GROUP": GIVEN["WANDB_RUN_GROUP"]}),
        (TRIAL | {"WANDB_RUN_GROUP": "mine"}, {name: GIVEN[name] for name in ("WANDB_RUN_ID", "WANDB_RESUME")}),
    ],
)
def test_a_trial_has_a_run_and_what_the_user_sets_stays(environ, expected):
    assert wandb_run.variables(environ) == expected


@pytest.mark.parametrize(("rank", "expected"), [("0", GIVEN), ("1", {})])
def test_only_the_worker_of_rank_0_writes_to_the_run(tmp_path, rank, expected):
    code = "import json, os; print(json.dumps({n: v for n, v in os.environ.items() if n.startswith('WANDB_')}))"
    words = ["determined_launch.wrap_rank", rank, "--", sys.executable, "-c", code]
    done = run(words, tmp_path, environ=TRIAL | GIVEN)
    assert json.loads(done.stdout.partition("] ")[2]) == expected


def test_another_worker_keeps_what_the_user_set():
    mine = TRIAL | {"WANDB_RUN_ID": "mine", "WANDB_RESUME": "allow", "WANDB_RUN_GROUP": "ours", "WANDB_MODE": "offline"}
    assert wandb_run.without(mine) == mine
