"""Commands on this machine and on a cluster: no srun, and torchrun's part is that of the launch layer."""

import pytest

from determined.errors import ConfigError
from determined_workflows.batch import command_line
from determined_workflows.batch.command_line import LAYER, SRUN_DROPPED
from determined_workflows.batch.settings import JobSettings

TORCHRUN = JobSettings(kind="distributed", launcher="torchrun", gpus=2)
LIGHTNING = JobSettings(kind="distributed", launcher="lightning", gpus=2)
STANDARD = JobSettings()
SWEEP = JobSettings(kind="sweep")
ALONE = "torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=1 --standalone"
APPENDED = "--nnodes ${NNODES} --gpus ${NUM_TRAINERS}"
TWO_NODES = (
    "torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=${NNODES} --rdzv_id=${JOBID} --rdzv_backend=c10d "
    "--rdzv_endpoint=${MASTER_ADDRESS}:${PORT} reduce.py --lr 0.1"
)


@pytest.mark.parametrize(
    ("settings", "command", "here", "on_cluster"),
    [
        (STANDARD, "python a.py --x 'b c'", "python a.py --x 'b c'", "python a.py --x 'b c'"),
        (STANDARD, "cd x && srun -n 2 --label python a.py", "cd x && python a.py", "cd x && python a.py"),
        (STANDARD, "A=1 srun --mem=2G python a.py | tee log", "A=1 python a.py | tee log", "A=1 python a.py | tee log"),
        (TORCHRUN, "python a.py 1", f"{ALONE} a.py 1", f"{LAYER} python a.py 1"),
        (
            TORCHRUN,
            "A=1 python -m pkg.a | tee l",
            f"A=1 {ALONE} -m pkg.a | tee l",
            f"A=1 {LAYER} python -m pkg.a | tee l",
        ),
        (TORCHRUN, TWO_NODES, TWO_NODES, f"{LAYER} reduce.py --lr 0.1"),
        (TORCHRUN, "torchrun --standalone -m pkg", "torchrun --standalone -m pkg", f"{LAYER} -m -- pkg"),
        (
            TORCHRUN,
            "torchrun --nnodes 1 --max-restarts 3 a.py -- --x",
            "torchrun --nnodes 1 --max-restarts 3 a.py -- --x",
            f"{LAYER} --max-restarts 3 -- a.py -- --x",
        ),
        (TORCHRUN, "python -m torch.distributed.run --nnodes 1 a.py", None, f"{LAYER} a.py"),
        (TORCHRUN, "python -m torch.distributed.launch a.py", None, "python -m torch.distributed.launch a.py"),
        (TORCHRUN, "srun torchrun --standalone a.py", "torchrun --standalone a.py", f"{LAYER} a.py"),
        (TORCHRUN, "srun python a.py", "python a.py", "python a.py"),
        (LIGHTNING, "python a.py --gpus 9", f"python a.py {APPENDED}", f"python a.py {APPENDED}"),
        (LIGHTNING, "srun python a.py", "python a.py", "python a.py"),
        (SWEEP, "wandb agent --count 1 a/b/ID", "wandb agent --count 1 a/b/ab12", "wandb agent --count 1 a/b/ab12"),
    ],
)
def test_a_command_starts_once_on_each_machine(
    settings: JobSettings, command: str, here: str | None, on_cluster: str
) -> None:
    sweep_id = "ab12" if settings.kind == "sweep" else None
    found = command_line.plan_without_slurm(settings, command, sweep_id)
    assert (found.text, found.started) == (here or command, "node")
    found = command_line.plan_for_cluster(settings, command, sweep_id)
    assert (found.text, found.started) == (on_cluster, "node")


def test_what_was_dropped_is_said() -> None:
    assert command_line.plan_without_slurm(LIGHTNING, "srun python a.py").notes == (SRUN_DROPPED,)
    assert command_line.plan_without_slurm(LIGHTNING, "python a.py").notes == ()
    (note,) = command_line.plan_for_cluster(TORCHRUN, TWO_NODES).notes
    assert "torchrun becomes the launch layer" in note


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("srun -n 2", "srun has no program behind it"),
        ("torchrun --nnodes 2", "torchrun has no script behind its options"),
        ("bash train.sh", "begins with python, srun, torchrun"),
    ],
)
def test_a_command_without_a_program_is_refused(command: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        command_line.plan_for_cluster(TORCHRUN, command)
