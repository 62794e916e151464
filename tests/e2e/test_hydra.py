"""Hydra projects on a real cluster: a run, a multirun, jobs of `hydra/launcher=det`, a pause, and a continuation."""

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.support import hydra_project, python_prefix
from tests.support.document_runner import follow
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

# One worker runs all of them on one cluster.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("hydra"), pytest.mark.budget(60, "follows a whole page")]

LAUNCHER = Path(__file__).parents[2] / "workflows" / "hydra-launcher"
PAGE = LAUNCHER.parents[1] / "docs" / "how-to" / "hydra.md"
SCRIPT = "scripts/train.py"
CORE = """
import time
from pathlib import Path

import hydra

import determined as det


@hydra.main(config_path=None, version_base="1.3")
def main(cfg):
    info = det.get_cluster_info()
    with det.core.init() as core:
        begin = 0
        if info.latest_checkpoint is not None:
            with core.checkpoint.restore_path(info.latest_checkpoint) as path:
                begin = int((path / "step").read_text())
        print(f"begins at {begin}", flush=True)
        for step in range(begin, cfg.steps):
            if step + 1 == cfg.hold_at:
                Path(cfg.gate, "here").touch()
                while not core.preempt.should_preempt() and not Path(cfg.gate, "open").exists():
                    time.sleep(0.02)
            core.train.report_validation_metrics(step + 1, {"loss": 1 / (step + 1)})
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": step + 1}) as (path, _):
                    (path / "step").write_text(str(step + 1))
                return None
    return 0.5


main()
"""


WHERE = """
import sys

import hydra


@hydra.main(config_path=None, version_base="1.3")
def main(cfg):
    print("prefix", sys.base_prefix)


main()
"""


PROJECT_IN_MODULE = {
    "lab/__init__.py": "",
    "lab/home.py": """
import os

os.environ["MY_HOME"] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
""",
    "lab/go.py": """
from . import home
import hydra


@hydra.main(version_base="1.3", config_path="../settings", config_name="base")
def go(cfg):
    print("HOME", cfg.home, "RESULTS", cfg.results)


go()
""",
    "settings/base.yaml": """
home: ${oc.env:MY_HOME}
results: ${hydra:runtime.output_dir}
hydra:
  run:
    dir: ${home}/results/first
""",
}


@pytest.fixture
def run(cluster, tmp_path):
    """Returns a function that runs a command in the project, logged in to the cluster, checks its code and returns its
    output."""
    folder = hydra_project.write(tmp_path / "project")
    environ = {
        **cluster.client_environment,
        "VIRTUAL_ENV": sys.prefix,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(LAUNCHER), os.environ.get("PYTHONPATH")])),
    }

    def run_words(*words, code=0):
        ended = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == code, ended.stdout
        return ended.stdout

    run_words.folder, run_words.environ = folder, environ
    return run_words


def det(run, *words, code=0):
    return run("-m", "determined_cli", "hydra", *words, code=code)


def created(cluster, output):
    return Experiment(cluster, int(re.search(r"(?:Created )?experiment (\d+)", output)[1]))


def by_job(experiment):
    return {trial["hparams"]["hydra"]["job"]: trial for trial in experiment.trials}


def test_a_hydra_run_writes_the_files_of_hydra_and_shows_its_configuration(cluster, run):
    out = run.folder / "kept"
    experiment = created(cluster, det(run, "run", SCRIPT, "+experiment=large", f"hydra.run.dir={out}", "-f"))
    experiment.ended()
    (trial,) = experiment.trials
    assert trial["hparams"]["trainer"] == {"gradient_accumulation_steps": 1, "steps": 4, "lr": 0.2}
    assert trial["hparams"]["model"] == {"type": "mlp", "width": 80}
    assert {path.name for path in (out / ".hydra").iterdir()} == {"config.yaml", "hydra.yaml", "overrides.yaml"}
    assert (out / ".hydra" / "overrides.yaml").read_text() == "- +experiment=large\n"
    assert json.loads((out / "result.json").read_text())["steps"] == 4
    assert trial["searcherMetricValue"] == 0.2


@pytest.mark.long  # the page, below, has a multirun
def test_a_multirun_is_one_experiment_with_a_trial_for_each_job(cluster, run):
    out = run.folder / "swept"
    words = ("run", SCRIPT, "-m", "trainer.lr=1,2", "model=small,large", f"hydra.sweep.dir={out}")
    launcher = ("hydra/launcher=slurm_launcher", "hydra.launcher.gpus_per_node=0", "hydra.launcher.partition=null")
    output = det(run, *words, *launcher)
    assert "hydra.launcher.cpus_per_task has no effect on the cluster" in output
    experiment = created(cluster, output)
    experiment.ended()
    trials = by_job(experiment)
    assert {
        number: (trial["hparams"]["trainer"]["lr"], trial["hparams"]["model"]["width"])
        for number, trial in trials.items()
    } == {
        0: (1, 8),
        1: (1, 80),
        2: (2, 8),
        3: (2, 80),
    }
    for number in trials:
        assert f"num: {number}\n" in (out / str(number) / ".hydra" / "hydra.yaml").read_text()


def test_the_det_launcher_returns_results_and_the_reason_of_a_failure(cluster, run):
    words = (SCRIPT, "--multirun", "hydra/launcher=det", "trainer.lr=1,2", "fail_at=-1,1")
    setup = 'hydra.launcher.setup=["export GREETING=hello","exclusive"]'
    output = run(*words, setup, "hydra.launcher.timeout_min=10", code=1)
    experiment = created(cluster, output)
    assert "job 1 failed (trial" in output
    assert "ValueError: no luck with step 1" in output
    assert "use additional_parameters.exclusive: true" in output
    assert "Traceback" not in output
    states = {number: trial["state"].removeprefix("STATE_") for number, trial in by_job(experiment).items()}
    assert states == {0: "COMPLETED", 1: "ERROR", 2: "COMPLETED", 3: "ERROR"}
    (sweep,) = run.folder.glob("multirun/*/*")
    assert "Jobs: 4 (2 completed, 2 error)" in det(run, "status", str(sweep))


def test_a_job_that_uses_the_core_api_is_paused_and_resumes(cluster, run, tmp_path):
    (run.folder / "core.py").write_text(CORE)
    gate = tmp_path / "gate"
    gate.mkdir()
    experiment = created(cluster, det(run, "run", "core.py", "+steps=6", "+hold_at=4", f"+gate={gate}"))
    experiment.running()

    wait_until((gate / "here").exists, what="the job is at its fourth step")
    experiment.pause()
    assert experiment.state == "PAUSED"
    (gate / "open").touch()
    experiment.do("activate")
    experiment.ended()
    text = "".join(experiment.log)
    assert "begins at 0" in text
    assert "begins at 4" in text


def test_a_run_is_shown_stopped_retried_and_followed_by_its_folder(cluster, run, tmp_path):
    (run.folder / "core.py").write_text(CORE)
    gate = tmp_path / "gate"
    gate.mkdir()
    words = ("+steps=6", "+hold_at=4", f"+gate={gate}", "hydra.run.dir=held")
    output = det(run, "run", "core.py", *words)
    assert "1 job; `det hydra status held` shows it" in output
    experiment = created(cluster, output)
    wait_until((gate / "here").exists, within=60, what="the job is at its fourth step")
    assert "Jobs: 1 (1 running)" in det(run, "status", "held")
    assert "begins at 0" in det(run, "logs", "held")
    det(run, "stop", "held")
    wait_until(lambda: experiment.state == "CANCELED", within=60)
    assert "has ended already" in det(run, "stop", "held", code=7)
    (gate / "open").touch()
    assert f"Continued experiment {experiment.id}" in det(run, "retry", "held")
    assert "begins at 4" in det(run, "logs", "-f", "held")
    experiment.ended()
    assert "Jobs: 1 (1 completed)" in det(run, "status", "held")


def test_a_module_with_a_results_folder_from_a_variable_runs_in_the_task(cluster, run):
    for name, text in PROJECT_IN_MODULE.items():
        (run.folder / name).parent.mkdir(exist_ok=True)
        (run.folder / name).write_text(text)
    experiment = created(cluster, det(run, "run", "lab.go", "--paused"))
    moved_folder = run.folder.rename(run.folder.with_name("gone"))
    experiment.do("activate")
    experiment.ended()
    text = "".join(experiment.log)
    home = re.search(r"HOME (\S+)", text)[1]
    assert f"RESULTS {home}/results/first" in text
    assert not run.folder.exists()
    moved_folder.rename(run.folder)


def test_a_run_that_failed_continues_on_the_cluster_from_its_checkpoint(cluster, run):
    folder = run.folder / "interrupted"
    run(SCRIPT, "fail_at=2", f"hydra.run.dir={folder}", code=1)
    output = det(run, "continue", str(folder), "--new_overrides", "fail_at=-1", "--on", "det", "-f")
    created(cluster, output).ended()
    assert "begins at 2" in output


def test_jobs_run_under_the_conda_environment_that_was_active(cluster, run, tmp_path):
    """conda itself cannot be installed here. The test uses a prefix of the same kind, without a ``pyvenv.cfg``."""
    prefix = python_prefix.make(tmp_path / "miniconda" / "envs" / "lab", site=sysconfig.get_path("purelib"))
    (run.folder / "where.py").write_text(WHERE)
    del run.environ["VIRTUAL_ENV"]
    run.environ["CONDA_PREFIX"] = str(prefix)
    experiment = created(cluster, det(run, "run", "where.py", "-f"))
    experiment.ended()
    assert f"prefix {prefix}" in "".join(experiment.log)


def test_the_page_works_as_written(cluster, run, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("det", "-m determined_cli"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n')
        program.chmod(0o755)
    (tmp_path / "work").mkdir()
    environ = {**run.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    assert follow(PAGE, tmp_path / "work", environ)


def test_a_refused_hydra_run_creates_no_experiment(cluster, run):
    def count():
        return len(cluster.session.get("/api/v1/experiments")["experiments"])

    before = count()
    det(run, "run", SCRIPT, "model=huge", code=4)
    det(run, "run", SCRIPT, "-m", "trainer.steps=range(1,1000001)", code=4)
    det(run, "run", SCRIPT, "--config", "resources.slots_per_trial=99", code=4)
    launched = (SCRIPT, "--multirun", "hydra/launcher=det", "trainer.lr=1,2")
    refused = run(*launched, "hydra.launcher.partition=nowhere", code=1)
    assert "nowhere" in refused
    assert "Traceback" not in refused
    assert "max_restarts" in run(*launched, "hydra.launcher.config={max_restarts: -1}", code=1)
    run(SCRIPT, "--multirun", "hydra/launcher=det", "first=${second}", "second=${first}", code=1)
    assert count() == before
