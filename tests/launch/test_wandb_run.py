"""The variables for Weights & Biases: all attempts of a trial share one run on the chief, unless the user sets
another."""

import json
import sys

import pytest
from tests.launch.test_workers import run

from determined_launch import wandb_run

TRIAL = {"DET_CLUSTER_ID": "6f1d0c9e-22", "DET_TRIAL_ID": "7", "DET_EXPERIMENT_ID": "2"}
TRIAL_VARIABLES = {
    "WANDB_RUN_ID": "trial-7-6f1d0c9e",
    "WANDB_RESUME": "allow",
    "WANDB_RUN_GROUP": "experiment-2-6f1d0c9e",
}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (TRIAL, TRIAL_VARIABLES),
        ({"DET_CLUSTER_ID": "6f1d0c9e-22", "DET_TASK_ID": "command"}, {}),
        (TRIAL | {"WANDB_RUN_ID": "mine"}, {"WANDB_RUN_GROUP": TRIAL_VARIABLES["WANDB_RUN_GROUP"]}),
        (TRIAL | {"WANDB_RESUME": "never"}, {"WANDB_RUN_GROUP": TRIAL_VARIABLES["WANDB_RUN_GROUP"]}),
        (
            TRIAL | {"WANDB_RUN_GROUP": "mine"},
            {name: TRIAL_VARIABLES[name] for name in ("WANDB_RUN_ID", "WANDB_RESUME")},
        ),
    ],
)
def test_a_trial_gets_a_run_and_variables_of_the_user_are_not_overridden(environ, expected):
    assert wandb_run.variables(environ) == expected


@pytest.mark.parametrize(("rank", "expected"), [("0", TRIAL_VARIABLES), ("1", {})])
def test_only_the_worker_of_rank_0_writes_to_the_run(tmp_path, rank, expected):
    code = "import json, os; print(json.dumps({n: v for n, v in os.environ.items() if n.startswith('WANDB_')}))"
    words = ["determined_launch.wrap_rank", rank, "--", sys.executable, "-c", code]
    done = run(words, tmp_path, environ=TRIAL | TRIAL_VARIABLES)
    assert json.loads(done.stdout.partition("] ")[2]) == expected


def test_another_worker_keeps_the_users_variables():
    user_variables = TRIAL | {
        "WANDB_RUN_ID": "mine",
        "WANDB_RESUME": "allow",
        "WANDB_RUN_GROUP": "ours",
        "WANDB_MODE": "offline",
    }
    assert wandb_run.without(user_variables) == user_variables
