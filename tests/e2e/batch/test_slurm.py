"""The README of ammunk/hpc followed as written, on a real Slurm: its three kinds of jobs, and what its users see of them."""

import json
from pathlib import Path

import pytest
from tests.support.batch_project import BatchProject
from tests.support.slurm import Slurm

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(60, "runs jobs of a real Slurm"),
]

STANDARD = """\
# experiment_configurations.txt

python main.py \\
--train \\
--batch_size 6
"""
"""The command file of that README: its first line is a comment."""
ONE_NODE = """\
torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=1 \\
    --standalone
    main.py --lr 0.1
"""
"""A block of that README; the line before the last has no backslash."""
TWO_NODES = """\
torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=${NNODES} \\
    --rdzv_id=${JOBID} \\
    --rdzv_backend=c10d \\
    --rdzv_endpoint=${MASTER_ADDRESS}:${PORT} \\
    reduce.py --lr 0.1
"""
REDUCE = """\
import os, sys
import torch
import torch.distributed as distributed
distributed.init_process_group("gloo")
value = torch.tensor([float(distributed.get_rank() + 1)])
distributed.all_reduce(value)
print("sum", value.item(), "of", distributed.get_world_size(), sys.argv[1:], flush=True)
distributed.destroy_process_group()
"""
EXPORTS = {"scratch_dir", "source_dir", "project_name", "exp_name", "which_distributed", "singularity_container"}
WANDB = """\
#!/usr/bin/env python3
import json, os, sys
from pathlib import Path
place = Path(os.environ["scratch_dir"], "wandb-" + os.environ["SLURM_ARRAY_TASK_ID"] + ".json")
place.write_text(json.dumps({"argv": sys.argv[1:], "has_key": os.environ.get("WANDB_API_KEY") == "0123456789abcdef"}))
"""
"""A program in place of wandb that records its arguments."""


def test_the_documents_standard_job_runs_its_command_and_sees_the_exports(project: BatchProject) -> None:
    """Rows of the table: the command file begins with a comment; lines; exports; the script itself."""
    project.command(STANDARD)
    done = project.submitter("--gpus", "1", "--exp-name", "testing")
    assert done.returncode == 0, done.stderr
    assert "--gres=gpu:1" in done.stderr
    job = done.stdout.split()[-1]
    project.wait(job)
    (seen,) = project.seen(job)
    assert seen["argv"] == ["--train", "--batch_size", "6"]
    assert seen["cwd"] == str(project.root)
    environ = seen["environ"]
    assert set(environ) >= EXPORTS
    assert {environ[name] for name in ("NNODES", "NUM_TRAINERS")} == {"1"}
    assert environ["JOBID"] == job
    assert environ["source_dir"] == str(project.root)
    assert environ["scratch_dir"] == str(project.scratch_dir)
    assert (project.scratch_dir / "testing" / "checkpoints").is_dir()
    output = (project.outputs / f"standard_testing_{job}.out").read_text()
    assert output.startswith("COMMANDS GIVEN: python main.py --train --batch_size 6\n")
    assert project.det("logs", job).stdout == output
    assert project.state(job)["state"] == "COMPLETED"
    (script,) = (project.outputs / ".batch").glob("*/job.sh")
    again = project.slurm.command("sbatch", "--parsable", str(script)).strip()
    project.wait(again)
    assert project.seen(again)[0]["argv"] == seen["argv"]


def test_a_command_file_of_ones_own_is_read_by_bash_on_the_node(project: BatchProject) -> None:
    """Rows of the table: ``${NUM_TRAINERS}`` and others; quotes, commas, spaces; no --gpus."""
    project.command(
        "python main.py --list 1,2 --name \"a b\" '${x}' ${NUM_TRAINERS} ${NNODES} ${JOBID} # c", "mine.txt"
    )
    job = project.run("--configs", "mine.txt")
    (seen,) = project.seen(job)
    assert seen["argv"] == ["--list", "1,2", "--name", "a b", "${x}", "1", "1", job]


def test_lightning_starts_one_task_for_each_gpu_with_the_appended_arguments(project: BatchProject) -> None:
    """Rows of the table: appended names; exports under srun; ``--num-nodes``, ``--job_type``, ``--num_nodes``."""
    project.command("python main.py --gpus 7 --lr 0.1")
    jobs = [
        project.submit("--job_type", "distributed", "-W", "lightning", flag, "2", "--gpus", "2", "-e", "li")
        for flag in ("--num-nodes", "--num_nodes")
    ]
    ports = []
    for job in jobs:
        project.wait(job)
        ranks = project.seen(job)
        assert [rank["argv"] for rank in ranks] == [["--lr", "0.1", "--nnodes", "2", "--gpus", "2"]] * 4
        assert not {"WORLD_SIZE", "NODE_RANK"} & set(ranks[0]["environ"])
        assert {rank["environ"]["SLURM_NTASKS"] for rank in ranks} == {"4"}
        ports.append({rank["environ"]["MASTER_PORT"] for rank in ranks})
        assert "FINISHED DISTRIBUTED JOB" in project.output(job)
    assert list(map(len, ports)) == [1, 1]
    assert ports[0] != ports[1]
    assert sorted(path.name.split("_")[1] for path in project.outputs.glob("lightning_li_*_*.out")) == ["li", "li"]


def test_a_line_with_srun_is_started_once_and_counts_its_own_tasks(project: BatchProject) -> None:
    """Row of the table: ``srun python main.py``, which that README requires for Lightning."""
    project.command("srun python main.py --lr 0.1")
    job = project.run("-j", "distributed", "-W", "lightning", "-N", "2", "-g", "2")
    ranks = project.seen(job)
    assert [rank["argv"] for rank in ranks] == [["--lr", "0.1"]] * 4
    assert {rank["environ"]["SLURM_STEP_ID"] for rank in ranks} == {"0"}
    assert project.state(job)["state"] == "COMPLETED"


@pytest.mark.torch
def test_the_documents_torchrun_blocks_run_as_written(project: BatchProject) -> None:
    """Rows of the table: torchrun written by the user; the general-purpose form has WORLD_SIZE and NODE_RANK."""
    project.add_launcher("torchrun")
    (project.root / "reduce.py").write_text(REDUCE)
    project.command(TWO_NODES)
    two = project.run("-j", "distributed", "-W", "torchrun", "-N", "2", "-g", "1", "-e", "tr")
    assert project.output(two).count("sum 3.0 of 2 ['--lr', '0.1']") == 2, project.output(two)
    project.command(ONE_NODE)
    one = project.run("-j", "distributed", "-W", "torchrun", "-g", "2")
    assert [rank["argv"] for rank in project.seen(one)] == [["--lr", "0.1"]] * 2, project.output(one)


def test_the_general_purpose_form_has_the_variables_of_the_document_on_each_node(project: BatchProject) -> None:
    """Rows of the table: exports; ``python -m torch.distributed.launch`` written by the user is not wrapped."""
    variables = ("WORLD_SIZE", "NODE_RANK", "NNODES", "NUM_TRAINERS")
    program = f'#!/bin/bash\necho "$0 ran: {" ".join(f"${name}" for name in variables)} $MASTER_ADDR:$MASTER_PORT $*"\n'
    for name in ("torchrun", "python"):
        (project.programs / name).unlink(missing_ok=True)
        project.add_program(name, program)
    for command in ("torchrun main.py", "python -m torch.distributed.launch --node_rank=${NODE_RANK} main.py"):
        project.command(command)
        job = project.run("-j", "distributed", "-W", "torchrun", "-N", "2", "-g", "4")
        lines = sorted(line.partition(" ran: ")[2] for line in project.output(job).splitlines() if " ran: " in line)
        assert [line.split()[:4] for line in lines] == [["2", "0", "2", "4"], ["2", "1", "2", "4"]]
        assert len({line.split()[4] for line in lines}) == 1


def test_a_project_with_spaces_and_a_percent_sign_in_its_name_runs(slurm: Slurm, tmp_path: Path) -> None:
    project = BatchProject(slurm, tmp_path / "a b", name="my project 100%j")
    job = project.run("-e", "x")
    assert project.seen(job)[0]["environ"]["project_name"] == project.name
    assert project.det("logs", job).stdout.startswith("COMMANDS GIVEN: ")
    assert project.state(job)["state"] == "COMPLETED"


@pytest.mark.torch
def test_a_plain_python_line_is_started_by_torchrun_on_each_node(project: BatchProject) -> None:
    project.add_launcher("torchrun")
    project.command("python main.py --lr 0.1")
    job = project.run("-j", "distributed", "-W", "torchrun", "-N", "2", "-g", "1")
    ranks = project.seen(job)
    assert [rank["argv"] for rank in ranks] == [["--lr", "0.1"]] * 2, project.output(job)
    assert [rank["environ"]["WORLD_SIZE"] for rank in ranks] == ["2", "2"]


def test_a_sweep_is_one_array_whose_agents_have_the_id_and_the_key(project: BatchProject) -> None:
    """Rows of the table: sweep on another host; id in place of SWEEP_ID; WANDB_API_KEY."""
    project.add_program("wandb", WANDB)
    (project.home / "wandb_credentials.txt").write_text("0123456789abcdef\n")
    project.command("wandb agent --count 1 WANDB_USERNAME/PROJECT_NAME/SWEEP_ID\n")
    done = project.submitter("-j", "sweep", "-e", "sw", "-g", "0", "--max-parallel", "2", stdin="ab12\n\n1\n")
    assert done.returncode == 0, done.stderr
    assert "4: the grid of sweeper.yml" in done.stderr
    job = done.stdout.split()[-1]
    project.wait(job)
    places = sorted(project.scratch_dir.glob("wandb-*.json"))
    assert [place.stem for place in places] == [f"wandb-{number}" for number in range(1, 5)]
    for place in places:
        found = json.loads(place.read_text())
        assert found == {"argv": ["agent", "--count", "1", "WANDB_USERNAME/PROJECT_NAME/ab12"], "has_key": True}
    assert sorted(path.name for path in project.outputs.glob("*.out")) == [
        f"sweep_sw_{job}_{n}.out" for n in range(1, 5)
    ]
    followed = project.det("logs", "-f", job)
    assert [line for line in followed.stdout.splitlines() if line.startswith("==>")] == [
        f"==> {job}_{number} <==" for number in range(1, 5)
    ]
    assert project.det("status", f"{job}_3").stdout.startswith(f"{job}_3 ")
    shown = project.slurm.command("scontrol", "show", "job", job)
    kept = [path for path in project.scratch.rglob("*") if path.is_file()]
    assert not [path for path in kept if "0123456789abcdef" in path.read_text(errors="replace")]
    assert "0123456789abcdef" not in shown + done.stdout + done.stderr
