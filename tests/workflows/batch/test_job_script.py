"""The script of a job: readable, valid for bash, and complete."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.recorded_jobs import project_in

from determined.errors import ConfigError
from determined_workflows.batch import container, job_script, sbatch_options
from determined_workflows.batch.command_line import RANK_PROGRAM, CommandLine
from determined_workflows.batch.job_script import JobPlan
from determined_workflows.batch.settings import JobSettings
from determined_workflows.batch.status import SLURM_STATE
from determined_workflows.site_profile import SiteProfile


@pytest.fixture
def plan(tmp_path: Path) -> JobPlan:
    project = project_in(tmp_path)
    settings = JobSettings(gpus=2)
    return JobPlan(
        settings=settings,
        project=project,
        record=project.records / "it's mine",
        line=CommandLine("python main.py", "node"),
        tasks_per_node=1,
        options=sbatch_options.of_job(settings, name="a b", output="/o/%j.out", tasks_per_node=1),
        comment="detent:ab12",
        site=SiteProfile(),
        environment=None,
        workdir=project.root,
        array=None,
        typed_command="det batch run",
    )


def variants(plan: JobPlan) -> list[JobPlan]:
    distributed = replace(plan.settings, kind="distributed", launcher="lightning", nodes=2, is_requeued=True)
    site = SiteProfile(Path("/etc/SITE.yaml"), ("module load x",), {}, None, "/local disk", {"A": "it's"})
    return [
        plan,
        replace(plan, settings=distributed, tasks_per_node=2, line=CommandLine("python main.py", "task")),
        replace(plan, line=CommandLine(f"srun {RANK_PROGRAM} python main.py", "job")),
        replace(plan, site=site, environment=Path("/envs/k/venv"), array="1-8%2"),
    ]


def test_scripts_of_all_kinds_are_valid_for_bash(plan: JobPlan) -> None:
    for each in variants(plan):
        text = job_script.text(each)
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_lines_of_sbatch_come_before_the_first_command(plan: JobPlan) -> None:
    lines = job_script.text(replace(plan, array="1-8%2")).splitlines()
    directives = [line for line in lines if line.startswith("#SBATCH")]
    assert lines[3 : 3 + len(directives)] == directives
    assert '#SBATCH --job-name="a b"' in directives
    assert directives[-2:] == ["#SBATCH --comment=detent:ab12", "#SBATCH --array=1-8%2"]


def test_a_job_that_runs_again_forgets_how_it_ended_before(plan: JobPlan) -> None:
    """Users may queue a job again that has ended by its time limit: ``scontrol requeue``."""
    ends = plan.record / "ends" / "25"
    ends.mkdir(parents=True)
    for name in ("job.json", "rank-0-0.json", SLURM_STATE):
        (ends / name).touch()
    begin = job_script.text(plan).partition("# What the program sees")[0]
    environ = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "25", "SLURM_JOB_NODELIST": "node1"}
    subprocess.run(["bash", "-c", begin], env=environ, check=True)
    assert [path.name for path in ends.iterdir()] == ["started"]


def test_a_distributed_job_starts_its_tasks_and_ends_with_the_line_of_the_document(plan: JobPlan) -> None:
    text = job_script.text(variants(plan)[1])
    assert "srun --nodes=2 --ntasks=4 --ntasks-per-node=2" in text
    assert "echo FINISHED DISTRIBUTED JOB" in text
    assert 'MASTER_ADDRESS="${MASTER_ADDR}" PORT="${MASTER_PORT}"' in text
    assert 'end_job.py" "${code}" --requeue' in text
    assert "MASTER_ADDR" not in job_script.text(plan)


def test_a_line_with_srun_is_not_started_by_srun(plan: JobPlan) -> None:
    text = job_script.text(variants(plan)[2])
    assert 'bash -c "${command}" command' in text
    assert "\nsrun" not in text


def test_set_up_lines_and_variables_of_the_site_come_before_the_environment(plan: JobPlan) -> None:
    text = job_script.text(variants(plan)[3])
    places = [text.index(part) for part in ("module load x", "export A=", "source /envs/k/venv/bin/activate", "srun")]
    assert places == sorted(places)
    assert "SLURM_TMPDIR='/local disk'/detent-" in text


def test_a_program_in_an_image_is_run_by_the_runtime(tmp_path: Path) -> None:
    image = "/images/a b.sif"
    own = container.wrap(CommandLine("python main.py 'x'", "node"), "apptainer", image, [tmp_path], has_gpus=True)
    assert own.text.startswith("apptainer exec --nv --bind /tmp,")
    assert own.text.endswith("\"${SLURM_TMPDIR}\" '/images/a b.sif' bash -c 'python main.py '\"'\"'x'\"'\"''")
    line = CommandLine(f"srun {RANK_PROGRAM} python main.py", "job")
    assert container.wrap(line, "singularity", "a.sif", [], has_gpus=False).text.startswith(
        f"srun {RANK_PROGRAM} singularity exec --bind "
    )


def test_an_image_without_a_runtime_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="needs apptainer or singularity"):
        container.runtime(may_be_loaded=False)
    assert container.runtime(may_be_loaded=True) == "apptainer"
    (tmp_path / "singularity").write_text("#!/bin/sh\n")
    (tmp_path / "singularity").chmod(0o755)
    assert container.runtime(may_be_loaded=False) == "singularity"


def test_the_folder_of_a_job_that_has_submitted_this_one_is_not_used(tmp_path: Path) -> None:
    lines = "\n".join(job_script._node_folder(SiteProfile(node_scratch=str(tmp_path))))  # noqa: SLF001
    environ = {"SLURM_TMPDIR": "/tmp/of/111", "DETENT_OWN_TMPDIR": "1", "SLURM_JOB_ID": "222", "PATH": os.defpath}
    argv = ["bash", "-c", f'{lines}\necho "$SLURM_TMPDIR"']
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/detent-{os.getuid()}/222\n"
