"""What ``det batch run`` does before a job: environment, checks, and refusals that leave nothing behind."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.batch_project import BatchProject
from tests.support.package_index import PackageIndex, package_index

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(60, "runs jobs of a real Slurm"),
]


@pytest.fixture
def index(project: BatchProject, tmp_path: Path) -> Iterator[PackageIndex]:
    """Yields an index of packages that jobs of the project use alone."""
    with package_index(tmp_path / "index") as served:
        project.variables.update({name: value for name, _, value in (pair.partition("=") for pair in served.variables)})
        yield served


def queued(project: BatchProject) -> str:
    """Returns the jobs that wait or run."""
    return project.slurm.command("squeue", "--noheader", "--format=%i")


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
        job = output.split()[-1]
        project.wait(job)
        assert str(project.root / ".virtual_envs") in project.output(job), project.output(job)
    assert index.asked[next(name for name in index.asked if "tinypackage" in name)] == 1
    assert (project.root / "virtual_env" / "bin" / "python").exists()
    assert "Virtual environment already exists" in project.submitter("-y").stderr


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


def test_a_pipfile_wins_and_the_sentence_of_pipenv_is_shown(project: BatchProject) -> None:
    """The program in place of pipenv fails as pipenv does for packages that exclude each other."""
    sentence = "ERROR: Cannot install -r r.txt because these package versions have conflicting dependencies."
    project.add_program("pipenv", f"#!/bin/bash\necho 'Locking...'\necho '{sentence}'\nexit 1\n")
    for name in ("Pipfile", "requirements.txt"):
        (project.root / name).write_text("")
    refused = project.submitter("-y")
    assert refused.returncode == 4, refused.stderr
    assert "Failed to install virtualenv from Pipfile: " in refused.stderr
    assert "conflicting dependencies" in refused.stderr
    assert not list((project.root / ".virtual_envs").glob("*/venv"))


def test_an_environment_is_built_on_the_login_node_on_demand(project: BatchProject, index: PackageIndex) -> None:
    index.add("tinypackage", "1.0")
    (project.root / "requirements.txt").write_text("tinypackage==1.0\n")
    project.command("python -c 'import tinypackage; print(tinypackage.version)'")
    names = ("squeue", "--noheader", "--states=all", "--format=%j")
    before = project.slurm.command(*names).count("detent-env")
    job = project.run("--build-here")
    assert "1.0" in project.output(job)
    assert project.slurm.command(*names).count("detent-env") == before


def test_a_job_in_an_image_runs_its_command_in_the_runtime(project: BatchProject) -> None:
    """The program in place of apptainer records its arguments and runs what follows the image."""
    program = '#!/bin/bash\necho "image $*"\nuntil [ "${1##*.}" = sif ]; do shift; done\nshift\nexec "$@"\n'
    project.add_program("apptainer", program)
    (project.root / "x.sif").touch()
    project.command("python main.py --name 'a b' ${NNODES}")
    job = project.run("-s", "x.sif")
    assert f"image exec --bind /tmp,{project.root},{project.scratch}" in project.output(job).replace("/data,", "")
    (seen,) = project.seen(job)
    assert seen["argv"] == ["--name", "a b", "1"]
    assert seen["environ"]["singularity_container"] == "x.sif"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("-p", "absent"), 'there is no partition "absent"; there are compute, short, down'),
        (("-p", "shor"), 'did you mean "short"?'),
        (("-p", "down"), "the partition down is DOWN"),
        (
            ("-p", "short", "-t", "00-00:06:00"),
            "the time limit 00-00:06:00 is above the 00:05:00 of the partition short",
        ),
        (("--", "--partition=short"), "above the 00:05:00 of the partition short"),
        (("--data", "absent"), "--data absent: there is no"),
        (("--numnodes", "2"), "did you mean --num-nodes?"),
        (("-j", "distributed"), "needs its launcher: -W torchrun or -W lightning"),
        (("-g", "99"), "sbatch: Batch job submission failed"),
        (("-j", "distributed", "-W", "lightning", "-g", "2", "--", "--ntasks-per-node=1"), "one task for each GPU"),
    ],
)
def test_what_slurm_would_refuse_or_never_start_is_refused_and_nothing_is_left(
    project: BatchProject, flags: tuple[str, ...], sentence: str
) -> None:
    """Rows of the table: an unknown flag; distributed without -W; tasks-per-node ≠ GPUs."""
    before = queued(project)
    refused = project.submitter("-y", *flags)
    assert refused.returncode != 0
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr
    assert queued(project) == before
    assert not project.scratch_dir.exists()


def test_the_end_of_input_at_the_question_means_no(project: BatchProject) -> None:
    """Row of the table: end of input at the question."""
    before = queued(project)
    refused = project.submitter(stdin="")
    assert refused.returncode == 1
    assert "nothing was submitted" in refused.stderr
    assert queued(project) == before
    assert not project.scratch_dir.exists()


@pytest.mark.long
def test_a_slurm_that_does_not_answer_is_named_within_15_seconds(project: BatchProject, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        text = Path(project.slurm.environment["SLURM_CONF"]).read_text().splitlines()
        lines = [line for line in text if not line.startswith("SlurmctldPort=")]
        conf = tmp_path / "slurm.conf"
        conf.write_text("\n".join([*lines, f"SlurmctldPort={silent.getsockname()[1]}"]) + "\n")
        project.variables["SLURM_CONF"] = str(conf)
        began = time.monotonic()
        refused = project.submitter("-y")
        assert time.monotonic() - began < 15
    assert refused.returncode == 1
    assert "Slurm does not answer: scontrol took longer than 10 s" in refused.stderr
    assert not project.scratch_dir.exists()


def test_options_and_variables_of_sbatch_are_shown_and_reach_slurm(project: BatchProject) -> None:
    (project.root / "hpc_files" / "SITE.yaml").write_text(
        "setup: ['export FROM_SETUP=yes']\nsbatch: {nice: 5}\nenvironment: {FROM_SITE: 'a b'}\n"
    )
    project.variables["SBATCH_TIMELIMIT"] = "7"
    done = project.submitter("--time", "00-00:09:00", "--", "--comment-free=1", stdin="")
    assert done.returncode == 1
    done = project.submitter("--time", "00-00:09:00", "-w", "hpc_files", "--", "--nice=7", "--mail-type", "END")
    assert done.returncode == 0, done.stderr
    for shown in ("--time=7  (SBATCH_TIMELIMIT)", "--nice=7  (after --)", "--mail-type END  (after --)"):
        assert shown in done.stderr
    job = done.stdout.split()[-1]
    project.wait(job)
    known = project.slurm.command("scontrol", "show", "job", job)
    assert "TimeLimit=00:07:00" in known
    assert "Nice=7" in known
    record = json.loads(next((project.outputs / ".batch").glob("*/record.json")).read_text())
    assert record["sbatch_words"] == ["--nice=7", "--mail-type", "END"]
