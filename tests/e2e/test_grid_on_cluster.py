"""`det runner run --on det`: a grid as an experiment is paused, activated, and continued after a failure."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.support.live_cluster import LiveCluster, environment
from tests.support.waiting import wait_until

from determined.client import lifecycle
from determined_workflows.runner.cluster import record as records

pytestmark = pytest.mark.e2e

GRID = """\
template:
  train: >
    echo trained >> {_output}/model; touch %(folder)s/started-{_name};
    while ! test -e %(folder)s/gate; do sleep 0.1; done

  test: if test -e %(folder)s/ready || test {norm} != bad; then cat {_output}/model; else exit 3; fi
resource: [0, 1]
---
norm: [new, bad]
moment: [0.1, 0.05]
"""


class Lab:
    """A folder with a grid, and ``det`` for the cluster."""

    def __init__(self, folder: Path, cluster: LiveCluster) -> None:
        self.folder = folder
        password = (cluster.data / "password").read_text().strip()
        self.environment = environment(folder) | {
            "DET_MASTER": cluster.url,
            "DET_USER": "admin",
            "DET_PASS": password,
        }
        (folder / "params.yaml").write_text(GRID % {"folder": folder})

    def det(self, *words: str) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-m", "determined_cli", *words]
        return subprocess.Popen(
            argv, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def ended(self, *words: str) -> tuple[int, list[str]]:
        process = self.det(*words)
        output, _ = process.communicate(timeout=240)
        return process.returncode, output.splitlines()

    def tree(self, output: str) -> dict[str, list[str]]:
        """Returns the names in an output folder. Names of logs are without their time."""
        return {
            path.name: sorted(file.name[:10] if file.name.startswith("log.") else file.name for file in path.iterdir())
            for path in (self.folder / output).iterdir()
            if path.is_dir()
        }


def test_a_grid_on_the_cluster_is_paused_activated_and_continued(cluster: LiveCluster, tmp_path: Path) -> None:
    lab = Lab(tmp_path, cluster)
    run = lab.det("runner", "run", "--cluster", "-v")
    experiment = wait_until(lambda: records.read(tmp_path / "output"), within=60.0).experiment
    wait_until(lambda: _states(cluster, experiment).count("STATE_RUNNING") == 2, within=60.0)
    wait_until(lambda: len(list(tmp_path.glob("started-*"))) == 2, within=60.0)
    code, lines = lab.ended("runner", "status")
    assert (code, lines[-1]) == (0, "Tasks: 4 (2 running, 2 waiting)")
    lifecycle.steer(cluster.session, experiment, "pause")
    wait_until(lambda: not cluster.held_slots, within=60.0)
    paused = f"Experiment {experiment} is paused; `det experiment activate {experiment}` continues it."
    wait_until(lambda: paused in (tmp_path / "output/.runner.console").read_text())
    (tmp_path / "gate").touch()
    lifecycle.steer(cluster.session, experiment, "activate")
    output, _ = run.communicate(timeout=240)
    assert run.returncode == 1, output
    assert paused in output
    assert "Failed tasks: 2/4" in output
    models = {path.parent.name: path.read_text() for path in (tmp_path / "output").glob("*/model")}
    # The interrupted commands ran again in the folders that were stored at the pause.
    assert models["Norm_new-Moment_0.1"] == "trained\ntrained\n"
    assert models["Norm_bad-Moment_0.05"] == "trained\n"

    (tmp_path / "ready").touch()
    code, lines = lab.ended("runner", "retry", "--on", "det")
    assert code == 0, lines
    assert "Tasks: 4, trials to run: 2" in lines
    assert {path.read_text() for path in (tmp_path / "output").glob("Norm_bad*/model")} == {"trained\n"}
    assert lab.ended("runner", "retry", "--cluster")[1][-1] == "No task has failed."
    code, lines = lab.ended("runner", "run", "--cluster")
    assert (code, lines[-1]) == (0, "All tasks have finished; -f runs them again.")
    code, lines = lab.ended("runner", "run")
    assert (code, lines[-1]) == (0, "No task failed.")
    assert "Skipped tasks: 4/4" in lines

    code, lines = lab.ended("runner", "run", "-o", "here")
    assert code == 0, lines
    on_cluster, on_this_machine = lab.tree("output"), lab.tree("here")
    assert {name: set(files) for name, files in on_cluster.items()} == {
        name: set(files) for name, files in on_this_machine.items()
    }
    for path in (tmp_path / "here").glob("*/param"):
        fetched = yaml.safe_load((tmp_path / "output" / path.parent.name / "param").read_text())
        local = yaml.safe_load(path.read_text())
        assert list(fetched["_scripts"]) == list(local["_scripts"])
        assert {key for key in fetched if fetched[key] != local[key]} <= {"_output", "_time", "_scripts"}
        assert yaml.safe_load((tmp_path / "output" / path.parent.name / "stat").read_text()) == yaml.safe_load(
            path.with_name("stat").read_text()
        )


def _states(cluster: LiveCluster, experiment: int) -> list[str]:
    trials = cluster.session.get(f"/api/v1/experiments/{experiment}/trials")["trials"]
    return [trial["state"] for trial in trials]
