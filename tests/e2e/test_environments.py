"""Python environments from requirements: built once by a task, shared, and reported if they fail."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_cluster import LiveCluster, live_cluster
from tests.support.live_models import SCRIPT
from tests.support.live_trials import Experiment, create
from tests.support.package_index import PackageIndex, package_index
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.budget(60, "installs packages")]

SHOW = "python3 -c 'import parrot; print(parrot.version, parrot.__file__)'"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    with package_index(tmp_path / "wheels") as created:
        created.add("parrot", "1.0", "2.0")
        yield created


def start(
    cluster: LiveCluster, index: PackageIndex, folder: Path, requirement: str, *, text: str = "", **more: Any
) -> Experiment:
    """Starts an experiment that prints its version of parrot. ``text`` makes its list of requirements unique."""
    return create(
        cluster,
        SCRIPT,
        folder,
        files={"requirements.txt": f"# {text or folder}\n{requirement}\n"},
        entrypoint=SHOW,
        max_restarts=0,
        environment={"venv": {"requirements": "requirements.txt"}, "environment_variables": index.variables},
        **more,
    )


def add(cluster: LiveCluster, index: PackageIndex, folder: Path, *packages: str, **more: Any) -> Experiment:
    """Starts an experiment that adds packages to the Python of its tasks and prints its version of parrot."""
    environment = {"pip": list(packages), "environment_variables": index.variables}
    entrypoint = more.pop("entrypoint", SHOW)
    return create(cluster, SCRIPT, folder, entrypoint=entrypoint, max_restarts=0, environment=environment, **more)


def build_of(experiment: Experiment) -> str:
    """Returns the task that builds for this experiment, from its log."""
    text = wait_until(
        lambda: "\n".join(line for line in lines(experiment) if "is built by task" in line), what="a build"
    )
    match = re.search(r"is built by task (\S+);", text)
    assert match is not None
    return match[1]


def lines(experiment: Experiment) -> list[str]:
    url = f"/api/v1/tasks/{experiment.task_id}/logs"
    return [str(line["log"]).removesuffix("\n") for line in experiment.cluster.session.stream(url)]


def log_of(cluster: LiveCluster, task_id: str) -> str:
    return "\n".join(
        str(line["log"]).removesuffix("\n") for line in cluster.session.stream(f"/api/v1/tasks/{task_id}/logs")
    )


def test_an_environment_is_built_once_by_a_task_and_shared(cluster, index, tmp_path):
    first = start(cluster, index, tmp_path / "first", "parrot==1.0", text="shared")
    first.ended()
    output = "\n".join(first.log)
    assert re.search(r"^1\.0 \S+/site-packages/parrot\.py$", output, re.MULTILINE), output
    assert "environment: requirements.txt" in output
    build = log_of(cluster, build_of(first))
    assert "built the environment" in build
    second = start(cluster, index, tmp_path / "second", "parrot==1.0", text="shared")
    second.ended()
    assert "is built by task" not in "\n".join(second.log)
    assert index.asked == {"parrot-1.0-py3-none-any.whl": 1}
    other = start(cluster, index, tmp_path / "other", "parrot==2.0")
    other.ended()
    assert "\n2.0 " in "\n".join(other.log)


@pytest.mark.long  # tests/harness/environments/test_build.py has the lines
def test_a_requirement_that_cannot_be_installed_fails_the_trial_with_its_line(cluster, index, tmp_path):
    failed = start(cluster, index, tmp_path, "parrot==9.0")
    failed.ended("ERROR")
    output = "\n".join(failed.log)
    assert 'requirements.txt:2: "parrot==9.0": No matching distribution found for parrot==9.0' in output
    # The next experiment builds it again, since the index may have the package by then.
    index.add("parrot", "9.0")
    mended = start(cluster, index, tmp_path / "again", "parrot==9.0", text=str(tmp_path))
    mended.ended()
    assert "\n9.0 " in "\n".join(mended.log)


@pytest.mark.long  # two builds meet in tests/harness/environments/test_build.py
def test_two_trials_that_need_the_same_environment_wait_for_one_build(cluster, index, tmp_path):
    index.gate.clear()
    experiments = [start(cluster, index, tmp_path / name, "parrot==1.0", text="both") for name in ("one", "two")]
    assert len({build_of(experiment) for experiment in experiments}) == 1
    index.gate.set()
    for experiment in experiments:
        experiment.ended()
    assert index.asked == {"parrot-1.0-py3-none-any.whl": 1}


@pytest.mark.long  # test_kills.py kills agents and masters
def test_killed_agents_and_masters_lose_no_build(cluster, index, tmp_path):
    index.gate.clear()
    experiment = start(cluster, index, tmp_path, "parrot==1.0")
    build = build_of(experiment)
    wait_until(lambda: index.asked, what="the build asks for the wheel")
    cluster.agents["agent-1"].end(signal.SIGKILL)
    cluster.kill_master()
    cluster.start_master()
    cluster.restart_agent()
    index.gate.set()
    experiment.ended()
    assert "built the environment" in log_of(cluster, build)


def test_a_killed_build_ends_the_wait_with_a_reason(cluster, index, tmp_path):
    index.gate.clear()
    experiment = start(cluster, index, tmp_path, "parrot==1.0")
    build = build_of(experiment)
    cluster.session.post(f"/api/v1/tasks/{build}/kill")
    experiment.ended("ERROR")
    assert "the task that builds the environment was killed" in "\n".join(experiment.log)


def test_packages_of_the_configuration_are_added_once_to_the_python_of_the_tasks(cluster, index, tmp_path):
    script = "python3 -c 'import parrot, requests; print(parrot.version, requests.__name__)'"
    first = add(cluster, index, tmp_path / "first", "parrot==1.0", entrypoint=script)
    first.ended()
    assert "\n1.0 requests" in "\n".join(first.log)
    assert "built the environment" in log_of(cluster, build_of(first))
    second = add(cluster, index, tmp_path / "second", "parrot==1.0", entrypoint=script)
    second.ended()
    assert "is built by task" not in "\n".join(second.log)
    assert index.asked == {"parrot-1.0-py3-none-any.whl": 1}


def test_an_environment_build_holds_no_slot_shows_its_last_line_and_ends_with_its_trial(cluster, index, tmp_path):
    index.gate.clear()
    experiment = add(cluster, index, tmp_path / "first", "parrot==2.0")
    build = build_of(experiment)
    wait_until(lambda: index.asked, what="the build asks for the wheel")
    for number in range(2):  # as many experiments as slots
        create(cluster, SCRIPT, tmp_path / f"other-{number}", entrypoint="true").ended()
    status = cluster.session.get(f"/detent/experiments/{experiment.id}/status")
    assert status["state"] == "STATE_BUILDING_ENVIRONMENT"
    assert status["text"].startswith("building environment: parrot==2.0 on agent agent-1: ")
    assert "Collecting parrot==2.0" in status["text"] or "Downloading" in status["text"]
    cluster.session.post(f"/api/v1/experiments/{experiment.id}/kill")
    experiment.ended("CANCELED")
    wait_until(lambda: cluster.session.get(f"/api/v1/tasks/{build}")["task"]["endTime"], what="the end of the build")
    assert "resources failed" not in "\n".join(experiment.log)


@pytest.mark.long  # the test above builds and uses one
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs tasks as other users")
def test_a_user_without_rights_on_the_data_folder_builds_and_uses_it(index, tmp_path):
    with live_cluster(tmp_path / "cluster", slots=0) as cluster:
        cluster.start_agent(arguments=("--unmapped-users", "54001:54100"))
        for name in ("first", "second"):
            experiment = start(cluster, index, tmp_path / name, "parrot==1.0", text="shared")
            experiment.ended()
            assert "1.0 /run/detent/environment/venv/lib" in "\n".join(experiment.log)
        added = add(cluster, index, tmp_path / "added", "parrot==2.0")
        added.ended()
        assert "2.0 /run/detent/environment/venv/lib" in "\n".join(added.log)
        venv, *others = (cluster.folder / "agent-1" / "environments").glob("*/build/venv")
        assert [path.stat().st_uid for path in (venv, *others)] == [54001, 54001]
    assert index.asked == {"parrot-1.0-py3-none-any.whl": 1, "parrot-2.0-py3-none-any.whl": 1}
