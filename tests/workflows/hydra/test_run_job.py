"""The program that runs a job inside a task: overrides, setup, exit code and time limit."""

import json
import subprocess
import sys

import pytest

from determined_launch import environment
from determined_workflows.hydra.task.run_job import number_of_job, script


def run(folder, setup=(), timeout_min=None, program="import sys; print(sys.argv[1])"):
    (folder / "train.py").write_text(program)
    jobs = {
        "script": "train.py",
        "module": None,
        "jobs": [["lr=1"], ["name='it''s'"]],
        "setup": list(setup),
        "timeout_min": timeout_min,
    }
    text = script(json.loads(json.dumps(jobs)), 1, sys.executable)
    return subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True, check=False)


def test_the_script_receives_the_overrides_of_the_job_unchanged(tmp_path):
    assert run(tmp_path).stdout == "name='it''s'\n"


def test_setup_lines_run_in_the_shell_before_the_script(tmp_path):
    program = "import os; print(os.environ['LIST'])"
    setup = ["no-such-command=1", "export FIRST=a", 'export LIST="$FIRST,b"']
    ended = run(tmp_path, setup, program=program)
    assert ended.stdout == "a,b\n"
    assert ended.returncode == 0


def test_the_number_of_the_job_is_read_from_the_hyperparameters(tmp_path):
    text = json.dumps({"hydra": {"job": 7}, "lr": 1})
    (tmp_path / "hparams").write_text(text)
    assert number_of_job({environment.HPARAMS: text}) == 7
    assert number_of_job({environment.HPARAMS + environment.FILE_SUFFIX: str(tmp_path / "hparams")}) == 7
    with pytest.raises(SystemExit, match="inside a trial"):
        number_of_job({})


def test_the_job_exits_with_the_code_of_the_script(tmp_path):
    assert run(tmp_path, program="raise SystemExit(7)").returncode == 7
    assert run(tmp_path, timeout_min=1, program="raise SystemExit(7)").returncode == 7


def test_a_job_is_ended_at_its_time_limit_with_a_message(tmp_path):
    ended = run(tmp_path, timeout_min=0.001, program="import time; time.sleep(600)")
    assert ended.returncode == 124
    assert "longer than timeout_min=0.001" in ended.stderr
