"""What ``det batch run`` does before a job: checks, and refusals that leave nothing behind."""

import json
import socket
import time
from pathlib import Path

import pytest
from tests.support.batch_project import BatchProject

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(60, "runs jobs of a real Slurm"),
]


def queued(project: BatchProject) -> str:
    """Returns the jobs that wait or run."""
    return project.slurm.command("squeue", "--noheader", "--format=%i")


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
