"""``det run`` on a cluster: the folder, the words of the command, the exit code, and Ctrl-C."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

from determined.client import outputs

pytestmark = pytest.mark.e2e

SHOW = """
import json, sys
print("SEEN", json.dumps([sys.argv[2:], open("beside.txt").read()]))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "show.py").write_text(SHOW)
    (path / "beside.txt").write_text("in the folder")
    return path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "determined_cli", "run", *words]


def run(cluster: LiveCluster, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), cwd=folder, env=cluster.client_environment, capture_output=True, text=True, timeout=60
    )


def experiment_of(output: str) -> int:
    return int(output.split("Created experiment ", 1)[1].split()[0])


def test_a_run_has_the_folder_and_the_words_as_they_were_given(cluster: LiveCluster, folder: Path):
    words = ["a  b", "it's", '"quoted"', "$HOME", "*", "--", "-x", ""]
    done = run(cluster, folder, "--config", "name=words", "--", "python3", "show.py", "0", *words)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if "SEEN" in line)
    assert json.loads(line.partition("SEEN ")[2]) == [words, "in the folder"]
    id = experiment_of(done.stdout)
    assert f"experiment {id} ended: COMPLETED" in done.stderr
    assert cluster.session.get(f"/api/v1/experiments/{id}")["experiment"]["name"] == "words"


def test_a_run_whose_program_fails_is_not_repeated_and_exits_with_1(cluster: LiveCluster, folder: Path):
    done = run(cluster, folder, "--", "python3", "show.py", "3")
    assert done.returncode == 1, done.stderr
    experiment = Experiment(cluster, experiment_of(done.stdout))
    assert f"experiment {experiment.id} ended: ERROR" in done.stderr
    assert done.stdout.count("SEEN") == 1


def test_ctrl_c_leaves_a_run_to_the_cluster(cluster: LiveCluster, folder: Path, tmp_path: Path):
    go = tmp_path / "go"
    script = f"echo begun; until [ -e {go} ]; do sleep 0.1; done"
    output = tmp_path / "output"
    with output.open("w") as file:
        following = subprocess.Popen(
            command("--", "sh", "-c", script), cwd=folder, env=cluster.client_environment, stdout=file, stderr=file
        )
    try:
        wait_until(lambda: "begun" in output.read_text(), what="the output of the run")
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 130
    finally:
        following.kill()
        following.wait()
        go.touch()
    experiment = Experiment(cluster, experiment_of(output.read_text()))
    assert f"detached; experiment {experiment.id} keeps running" in output.read_text()
    experiment.ended()


def test_a_detached_run_prints_its_id_and_goes_on(cluster: LiveCluster, folder: Path):
    done = run(cluster, folder, "-d", "--slots", "0", "--", "true")
    assert (done.returncode, done.stderr) == (0, "")
    experiment = Experiment(cluster, experiment_of(done.stdout))
    experiment.ended()


def test_a_run_keeps_the_folders_that_it_names_as_outputs(cluster: LiveCluster, folder: Path, tmp_path: Path):
    script = "mkdir runs; echo kept > runs/a.txt; echo lost > b.txt"
    done = run(cluster, folder, "--outputs", "runs", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    (found,) = outputs.of_experiment(cluster.session, experiment_of(done.stdout))
    outputs.download(cluster.session, str(found["uuid"]), tmp_path / "got")
    assert [str(path.relative_to(tmp_path / "got")) for path in sorted((tmp_path / "got").rglob("*.txt"))] == [
        "runs/a.txt"
    ]


def test_the_code_of_two_runs_is_stored_and_their_differences_are_shown(cluster: LiveCluster, folder: Path):
    for words in (["init", "--quiet", "-b", "main"], ["add", "."], ["commit", "--quiet", "-m", "work"]):
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)
    first = experiment_of(run(cluster, folder, "-d", "--", "true").stdout)
    (folder / "beside.txt").write_text("changed")
    secret = "environment.environment_variables=[API_TOKEN=changed]"
    second = experiment_of(run(cluster, folder, "-d", "--config", secret, "--", "true").stdout)
    code = cluster.session.get(f"/detent/experiments/{second}/code")["code"]
    assert (code["branch"], code["isDirty"], code["untracked"]) == ("main", True, [])
    assert "-in the folder" in code["diff"]
    assert "+********" in code["diff"]
    det = [sys.executable, "-m", "determined_cli", "experiment"]
    described = subprocess.run(
        [*det, "describe", str(second)], env=cluster.client_environment, capture_output=True, text=True, check=True
    )
    assert f"code of experiment {second}: commit {code['commit']} on main, with uncommitted changes" in described.stdout
    shown = subprocess.run(
        [*det, "diff", str(first), str(second)], env=cluster.client_environment, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    assert f"--- {first}/beside.txt\n+++ {second}/beside.txt\n@@ -1 +1 @@\n-in the folder\n+changed\n" in shown.stdout
    assert "+uncommitted changes:\n" in shown.stdout
    for id in (first, second):
        Experiment(cluster, id).ended()
