"""One project on Slurm, on a cluster and on this machine: the same commands print the same results."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.e2e.batch.programs import CORE, LIGHTNING, ONE_NODE, PLAIN, RENDEZVOUS, STANDARD, TORCH, TWO_NODES, WANDB
from tests.support.batch_project import BatchProject
from tests.support.live_cluster import LiveCluster, live_cluster
from tests.support.live_trials import Experiment
from tests.support.package_index import package_index
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(60, "runs the same job on three targets"),
]


@pytest.fixture
def on_three(project: BatchProject, cluster: LiveCluster) -> BatchProject:
    """Returns the project with a sign-in to a cluster."""
    sign_in(project, cluster)
    return project


def sign_in(project: BatchProject, cluster: LiveCluster) -> None:
    password = (cluster.data / "password").read_text().strip()
    project.variables |= {"DET_MASTER": cluster.url, "DET_USER": "admin", "DET_PASS": password}


@pytest.fixture
def two_machines(project: BatchProject, tmp_path: Path) -> Iterator[LiveCluster]:
    """Yields a cluster with two agents of one slot."""
    with live_cluster(tmp_path / "cluster") as cluster:
        cluster.start_agent("agent-2")
        sign_in(project, cluster)
        yield cluster


def results(output: str) -> list[str]:
    """Returns the lines that programs print as their results."""
    lines = [line for line in output.splitlines() if not line.startswith("COMMANDS GIVEN")]
    return sorted(line.partition("result:")[2] for line in lines if "result:" in line)


def on_slurm(project: BatchProject, *words: str) -> list[str]:
    output = project.output(project.run(*words))
    assert "result:" in output, output
    return results(output)


def on_local(project: BatchProject, *words: str) -> list[str]:
    done = project.det("submit", "--on", "local", "-y", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = project.det("logs")
    assert shown.returncode == 0, shown.stderr
    return results(shown.stdout)


def created(project: BatchProject, cluster: LiveCluster, *words: str) -> Experiment:
    """Submits to the cluster and returns the experiment."""
    done = project.det("submit", "--on", "det", "-y", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return Experiment(cluster, int(done.stdout.split()[-1]))


def on_det(project: BatchProject, cluster: LiveCluster, *words: str) -> list[str]:
    experiment = created(project, cluster, *words)
    experiment.ended()
    assert "COMPLETED" in project.det("status", str(experiment.id)).stdout
    if len(experiment.trials) == 1:
        return results(project.det("logs", str(experiment.id)).stdout)
    lines = []
    for trial in experiment.trials:
        stream = cluster.session.stream(f"/api/v1/trials/{trial['id']}/logs")
        lines += [str(line["log"]).rstrip("\n") for line in stream]
    return results("\n".join(lines))


def test_a_standard_job_prints_the_same_on_three_targets(on_three: BatchProject, cluster: LiveCluster) -> None:
    (on_three.root / "main.py").write_text(STANDARD)
    on_three.command("# a comment\npython main.py --list 1,2 \\\n--note \"a b\" ${NUM_TRAINERS} '${x}'\n")
    expected = [" ['--list', '1,2', '--note', 'a b', '1', '${x}'] 1.1416666666666666 1 tiny project"]
    assert on_slurm(on_three, "-e", "tiny") == expected
    assert on_local(on_three, "-e", "tiny") == expected
    assert on_det(on_three, cluster, "-e", "tiny") == expected
    assert [path.name for path in on_three.outputs.glob("*local*.out")] == ["standard_tiny_local-1.out"]


@pytest.mark.torch
@pytest.mark.long  # test_slurm.py starts the blocks of the README of ammunk/hpc under torchrun
def test_two_ranks_of_torchrun_print_the_same_on_three_targets(on_three: BatchProject, cluster: LiveCluster) -> None:
    on_three.add_launcher("torchrun")
    (on_three.root / "reduce.py").write_text(TORCH)
    on_three.command("python reduce.py\n")
    flags = ("-j", "distributed", "-W", "torchrun")
    expected = on_slurm(on_three, *flags, "-N", "2", "-g", "1")
    assert len(expected) == 1
    assert expected[0].startswith(" 2 [-")
    on_three.command(ONE_NODE)
    assert on_local(on_three, *flags, "-g", "2") == expected
    on_three.command(TWO_NODES)
    assert on_det(on_three, cluster, *flags, "-N", "2", "-g", "1") == expected


def test_a_sweep_runs_its_agents_on_three_targets(on_three: BatchProject, cluster: LiveCluster) -> None:
    program = on_three.root / "wandb"
    program.write_text(WANDB)
    program.chmod(0o755)
    on_three.command("./wandb agent --count 1 me/project/SWEEP_ID\n")
    flags = ("-j", "sweep", "-g", "0", "--sweep-id", "ab12", "--count", "2")
    expected = [" agent --count 1 me/project/ab12"] * 2
    assert on_slurm(on_three, *flags) == expected
    assert on_local(on_three, *flags, "--max-parallel", "2") == expected
    assert on_det(on_three, cluster, *flags) == expected


def test_lightnings_general_purpose_form_has_its_variables_without_slurm(
    on_three: BatchProject, cluster: LiveCluster
) -> None:
    """Rows of the table: Lightning on agents or ``--local``; without Slurm ``srun`` is dropped with a line."""
    (on_three.root / "main.py").write_text(RENDEZVOUS)
    on_three.command("python main.py --lr 0.1\n")
    flags = ("-j", "distributed", "-W", "lightning", "-g", "2")
    expected = [" ['--lr', '0.1', '--nnodes', '1', '--gpus', '2'] 1 0 1 2"]
    assert on_local(on_three, *flags) == expected
    assert on_det(on_three, cluster, *flags) == expected
    on_three.command("srun python main.py --lr 0.1\n")
    done = on_three.det("submit", "--on", "local", "-y", *flags)
    assert "srun is dropped from the command" in done.stderr
    assert results(done.stdout) == [" ['--lr', '0.1'] 1 0 1 2"]


def test_a_paused_script_with_the_core_api_ends_as_one_that_was_not(
    on_three: BatchProject, cluster: LiveCluster
) -> None:
    (on_three.root / "main.py").write_text(CORE)
    on_three.command("python main.py\n")
    expected = on_det(on_three, cluster)
    assert expected[0].startswith(" 10 0.3486784401")
    (on_three.scratch_dir / "hold").touch()
    done = on_three.det("submit", "--on", "det", "-y")
    assert "main.py uses determined.core: it can be paused" in done.stderr
    experiment = Experiment(cluster, int(done.stdout.split()[-1]))
    experiment.at_step(4)
    experiment.pause()
    (on_three.scratch_dir / "hold").unlink()
    experiment.do("activate")
    experiment.ended()
    assert results("\n".join(experiment.log)) == expected
    assert [line for line in experiment.log if "begins at" in line][1:] == ["begins at 5"]


def test_a_paused_plain_script_starts_anew_and_the_submission_says_so(
    on_three: BatchProject, cluster: LiveCluster
) -> None:
    (on_three.root / "main.py").write_text(PLAIN)
    on_three.command("python main.py\n")
    on_three.scratch_dir.mkdir()
    (on_three.scratch_dir / "hold").touch()
    done = on_three.det("submit", "--on", "det", "-y", "--config", "preemption_timeout=1")
    assert "starts anew when it is activated" in done.stderr
    experiment = Experiment(cluster, int(done.stdout.split()[-1]))
    wait_until(lambda: (on_three.scratch_dir / "at").exists(), what="the program runs")
    experiment.pause()
    (on_three.scratch_dir / "hold").unlink()
    experiment.do("activate")
    experiment.ended()
    assert [line for line in experiment.log if line == "starts"] == ["starts"] * 2
    assert results("\n".join(experiment.log)) == [" ended"]


def test_a_local_job_is_stopped_from_another_terminal_and_run_again(on_three: BatchProject) -> None:
    project = on_three
    project.command(
        "echo begun; echo ${SLURM_TMPDIR} > ${scratch_dir}/disk; [ -e ${scratch_dir}/mended ] || sleep 60; exit 3"
    )
    argv = ["det", "batch", "submit", "--on", "local", "-y", "-e", "long"]
    options = {"cwd": project.root, "env": project.environment, "stderr": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(argv, stdout=subprocess.PIPE, **options) as running,  # type: ignore[call-overload]
        ExitStack() as stack,
    ):
        wait_until(lambda: "begun" in project.output("local-1"), what="the program runs")
        follower = stack.enter_context(
            subprocess.Popen(["det", "batch", "logs", "-f"], stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]
        )
        assert project.state("local-1")["state"] == "RUNNING"
        stopped = project.det("stop", "local-1")
        assert stopped.returncode == 0, stopped.stderr
        assert running.wait(30) == 128 + 15
        output, messages = follower.communicate(timeout=30)
        assert "begun" in output
        assert "local-1 is CANCELLED" in messages
    assert project.state("local-1")["state"] == "CANCELLED"
    assert project.det("stop", "local-1").returncode == 7
    assert not Path((project.scratch_dir / "disk").read_text().strip()).exists()
    (project.scratch_dir / "mended").touch()
    again = project.det("retry", "local-1")
    assert again.returncode == 3, again.stderr
    assert project.state("local-2")["detail"].endswith("exit code 3")
    assert (project.outputs / "standard_long_local-2.out").exists()
    assert project.det("logs", "local-2").stdout == project.output("local-2")


def test_data_is_below_the_folder_of_the_task_and_pools_are_named(on_three: BatchProject, cluster: LiveCluster) -> None:
    (on_three.scratch_dir / "sets").mkdir(parents=True)
    (on_three.scratch_dir / "sets" / "a.txt").write_text("one")
    on_three.command('echo "result: $(cat ${SLURM_TMPDIR}/sets/a.txt) ${SLURM_TMPDIR#${source_dir}}"')
    assert on_det(on_three, cluster, "-p", "default", "--data", "sets") == [" one /.det_batch/disk/node"]
    (found,) = on_local(on_three, "--data", "sets")
    assert f"/detent-{os.getuid()}/" in found
    assert not Path(found.removeprefix(" one ")).exists()
    refused = on_three.det("submit", "--on", "det", "-y", "-p", "compute")
    assert refused.returncode == 4
    assert "the cluster has no pool of that name; there are default" in refused.stderr


def test_a_search_of_our_own_runs_over_the_parameters_of_the_sweep(
    on_three: BatchProject, cluster: LiveCluster
) -> None:
    (on_three.root / "main.py").write_text('import sys\nprint("result:", sys.argv[1:])\n')
    on_three.command("wandb agent --count 1 me/project/SWEEP_ID\n")
    found = on_det(on_three, cluster, "-j", "sweep", "-g", "0", "--searcher", "grid")
    assert found == [f" ['--batch_size={size}', '--learning_rate={rate}']" for size in (12, 6) for rate in (0.01, 0.1)]


def test_a_failed_job_on_a_cluster_is_run_again_and_a_running_one_is_canceled(
    on_three: BatchProject, cluster: LiveCluster
) -> None:
    on_three.command("[ -e ${scratch_dir}/mended ] && echo result: mended || exit 3\n")
    experiment = created(on_three, cluster)
    experiment.ended("ERROR")
    assert on_three.state(str(experiment.id))["state"] == "FAILED"
    (on_three.scratch_dir / "mended").touch()
    again = on_three.det("retry", str(experiment.id))
    assert again.returncode == 0, again.stderr
    experiment.ended()
    assert results("\n".join(experiment.log)) == [" mended"]
    assert on_three.det("retry", str(experiment.id)).returncode == 7
    on_three.command("echo started; sleep 60\n")
    running = created(on_three, cluster, "--config", "preemption_timeout=1")
    running.running()
    stopped = on_three.det("stop")
    assert stopped.returncode == 0, stopped.stderr
    running.ended("CANCELED")
    assert on_three.state(str(running.id))["state"] == "CANCELLED"


@pytest.mark.long  # the form without Slurm, below, has the same variables
def test_lightnings_form_has_one_process_on_each_machine(project: BatchProject, two_machines: LiveCluster) -> None:
    """Row of the table: Lightning on agents."""
    (project.root / "main.py").write_text(RENDEZVOUS)
    project.command("python main.py\n")
    flags = ("-j", "distributed", "-W", "lightning", "-N", "2", "-g", "1")
    expected = [f" ['--nnodes', '2', '--gpus', '1'] 2 {rank} 2 1" for rank in (0, 1)]
    assert on_det(project, two_machines, *flags) == expected


@pytest.mark.long
def test_the_environment_of_a_project_is_the_same_here_and_in_a_task(
    on_three: BatchProject, cluster: LiveCluster, tmp_path: Path
) -> None:
    with package_index(tmp_path / "index") as index:
        index.add("parrot", "1.0", "2.0")
        on_three.variables.update({name: value for name, _, value in (pair.partition("=") for pair in index.variables)})
        (on_three.root / "requirements.txt").write_text(f"# {tmp_path}\nparrot==1.0\n")
        on_three.command("python -c 'import parrot, sys; print(\"result:\", parrot.version, sys.prefix)'\n")
        (here,) = on_local(on_three)
        assert here.startswith(f" 1.0 {on_three.root}/.virtual_envs/")
        variables = f"environment.environment_variables={index.variables}"
        (there,) = on_det(on_three, cluster, "--config", variables)
        assert there.startswith(" 1.0 ")
        assert there != here


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.budget(120, "trains with Lightning on three targets")
def test_lightning_itself_ends_on_all_ranks_with_equal_weights(
    project: BatchProject, two_machines: LiveCluster
) -> None:
    # A link to it would be a Python without the packages of its environment.
    (project.programs / "python").unlink()
    project.add_program("python", f'#!/bin/bash\nexec {sys.executable} "$@"\n')
    (project.root / "main.py").write_text(LIGHTNING)
    project.command("python main.py\n")
    flags = ("-j", "distributed", "-W", "lightning", "--mem", "1G")
    expected = on_slurm(project, *flags, "-N", "2", "-g", "1")
    assert len(expected) == 2
    assert expected[0] == expected[1]
    assert expected[0].startswith(" 2 1 [")
    assert on_local(project, *flags, "-g", "2") == expected
    assert on_det(project, two_machines, *flags, "-N", "2", "-g", "1") == expected
