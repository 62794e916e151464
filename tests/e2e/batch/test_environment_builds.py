"""Environments that ``det batch run`` builds by a job of Slurm: shared, failed, interrupted."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.batch_project import BatchProject
from tests.support.package_index import PackageIndex, package_index
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(60, "runs jobs of a real Slurm"),
]

INSTALLERS = Path(__file__).parents[3] / ".cache" / "installers" / "bin"
PIPFILE = '[[source]]\nurl = "URL"\nverify_ssl = false\nname = "here"\n\n[packages]\ntinypackage = "==9"\n'
"""Its index has no such version."""


@pytest.fixture
def index(project: BatchProject, tmp_path: Path) -> Iterator[PackageIndex]:
    """Yields an index of packages that jobs of the project use alone."""
    with package_index(tmp_path / "index") as served:
        project.variables.update({name: value for name, _, value in (pair.partition("=") for pair in served.variables)})
        yield served


@pytest.fixture
def building(project: BatchProject, index: PackageIndex) -> Iterator[subprocess.Popen[str]]:
    """Yields a submission whose environment is being built; the index waits for its gate."""
    index.add("tinypackage", "1.0")
    index.gate.clear()
    (project.root / "requirements.txt").write_text("tinypackage==1.0\n")
    project.command("python -c 'import sys, tinypackage; print(sys.prefix)'")
    argv = ["bash", "job_submitter.sh", "-y"]
    with subprocess.Popen(
        argv,
        cwd=project.root / "hpc_files",
        env=project.environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as submission:
        try:
            assert index.is_asked.wait(60)
            yield submission
        finally:
            index.gate.set()


def builds(project: BatchProject) -> list[str]:
    """Returns the ids of the jobs that build an environment, and wait or run."""
    lines = project.slurm.command("squeue", "--noheader", "--format=%i %j").splitlines()
    return [line.split()[0] for line in lines if "detent-env" in line]


def assert_nothing_counts_as_built(project: BatchProject) -> None:
    assert not (project.root / "virtual_env").exists()
    assert not list((project.root / ".virtual_envs").glob("*/result.json"))
    assert "environment of requirements.txt would be installed first" in project.det("check").stderr


def test_the_environment_is_built_by_one_job_and_used_by_two_submissions(
    project: BatchProject, index: PackageIndex
) -> None:
    """Rows of the table: venv half built; installer job."""
    index.add("tinypackage", "1.0")
    (project.root / "requirements.txt").write_text("tinypackage==1.0\n")
    project.command("python -c 'import sys, tinypackage; print(sys.prefix)'")
    argv = ["bash", "job_submitter.sh", "-y"]
    options = {"cwd": project.root / "hpc_files", "env": project.environment, "text": True}
    both = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]
        for _ in range(2)
    ]
    answers = [each.communicate(timeout=120) for each in both]
    for output, messages in answers:
        assert output.startswith("Submitted batch job"), messages
        assert "Finished installing virtualenv" in messages
        assert "environments kept for later jobs: 1, " in messages
        job = output.split()[-1]
        project.wait(job)
        assert str(project.root / ".virtual_envs") in project.output(job), project.output(job)
    assert index.asked[next(name for name in index.asked if "tinypackage" in name)] == 1
    assert (project.root / "virtual_env" / "bin" / "python").exists()
    assert "Virtual environment already exists" in project.submitter("-y").stderr


@pytest.mark.long  # tests/harness/environments/test_build.py fails a build
def test_a_failed_build_shows_the_sentence_of_the_installer_and_counts_as_nothing(
    project: BatchProject, index: PackageIndex
) -> None:
    (project.root / "requirements.txt").write_text("# one\nabsentpackage==99\n")
    refused = project.submitter("-y")
    assert refused.returncode == 4, refused.stderr
    assert 'requirements.txt:2: "absentpackage==99"' in refused.stderr
    assert "nothing was submitted" in refused.stderr
    assert not (project.root / "virtual_env").exists()
    assert not list((project.root / ".virtual_envs").glob("*/venv"))
    assert not project.outputs.exists()


@pytest.mark.long  # the test above builds in a job
def test_an_environment_is_built_on_the_login_node_on_demand(project: BatchProject, index: PackageIndex) -> None:
    index.add("tinypackage", "1.0")
    (project.root / "requirements.txt").write_text("tinypackage==1.0\n")
    project.command("python -c 'import tinypackage; print(tinypackage.version)'")
    names = ("squeue", "--noheader", "--states=all", "--format=%j")
    before = project.slurm.command(*names).count("detent-env")
    job = project.run("--build-here")
    assert "1.0" in project.output(job)
    assert project.slurm.command(*names).count("detent-env") == before


@pytest.mark.long  # tests/harness/environments/test_build.py repeats a build that was killed
def test_a_build_that_is_cancelled_counts_as_nothing_and_is_repeated(
    project: BatchProject, index: PackageIndex, building: subprocess.Popen[str]
) -> None:
    """Row of the table: venv half built."""
    (job,) = builds(project)
    project.slurm.command("scancel", job)
    output, messages = building.communicate(timeout=60)
    assert (building.returncode, output) == (4, "")
    assert f"the job {job} ended without a result" in messages
    assert "nothing was submitted" in messages
    assert_nothing_counts_as_built(project)
    index.gate.set()
    again = project.run("-y")
    assert str(project.root / ".virtual_envs") in project.output(again), project.output(again)


@pytest.mark.long  # tests/harness/environments/test_build.py repeats a build that was killed
def test_a_submission_that_is_killed_leaves_its_build_to_the_next_one(
    project: BatchProject, index: PackageIndex, building: subprocess.Popen[str]
) -> None:
    os.killpg(building.pid, signal.SIGKILL)
    building.communicate(timeout=60)
    assert_nothing_counts_as_built(project)
    assert not project.outputs.exists()
    index.gate.set()
    job = project.run("-y")
    assert str(project.root / ".virtual_envs") in project.output(job), project.output(job)
    assert index.asked == {"tinypackage-1.0-py3-none-any.whl": 1}
    wait_until(lambda: not builds(project), what="no build is left in the queue")


@pytest.mark.long  # tests/harness/environments/test_build.py builds from a Pipfile
def test_a_pipfile_wins_and_one_that_cannot_be_solved_shows_the_sentence_of_pipenv(
    project: BatchProject, index: PackageIndex
) -> None:
    assert (INSTALLERS / "pipenv").exists(), "make installers"
    index.add("tinypackage", "1.0")
    (project.programs / "pipenv").symlink_to(INSTALLERS / "pipenv")
    (project.root / "requirements.txt").write_text("")
    (project.root / "Pipfile").write_text(PIPFILE.replace("URL", index.url))
    refused = project.submitter("-y")
    assert refused.returncode == 4, refused.stderr
    assert 'Failed to install virtualenv from Pipfile: Pipfile:7: "tinypackage":' in refused.stderr
    assert "No matching distribution found for tinypackage==9" in refused.stderr
    assert not (project.root / "virtual_env").exists()
    assert not list((project.root / ".virtual_envs").glob("*/venv"))
    assert not project.outputs.exists()
