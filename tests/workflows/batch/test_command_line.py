"""What a job starts for a command: wrapped, appended, or as written."""

import pytest

from determined.errors import ConfigError
from determined_workflows.batch import command_line, shell_words
from determined_workflows.batch.settings import JobSettings

RANK = command_line.RANK_PROGRAM
TORCHRUN = JobSettings(kind="distributed", launcher="torchrun", gpus=2, nodes=2)
ONE_NODE = JobSettings(kind="distributed", launcher="torchrun", gpus=2)
LIGHTNING = JobSettings(kind="distributed", launcher="lightning", gpus=2, nodes=2)
NUM_NODES = JobSettings(kind="distributed", launcher="lightning", gpus=2, nodes=2, nodes_argument="num_nodes")
STANDARD = JobSettings()
MEETING = "--rdzv_id=${JOBID} --rdzv_backend=c10d --rdzv_endpoint=${MASTER_ADDR}:${MASTER_PORT} --max_restarts=3"
LAUNCHER = f"torchrun --nproc_per_node=${{NUM_TRAINERS}} --nnodes=${{NNODES}} {MEETING}"
ALONE = "torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=1 --standalone"
APPENDED = "--nnodes ${NNODES} --gpus ${NUM_TRAINERS}"


@pytest.mark.parametrize(
    ("settings", "command", "text", "started"),
    [
        (STANDARD, "python main.py --a 1", "python main.py --a 1", "node"),
        (STANDARD, "cd x && srun -n 2 python a.py", f"cd x && srun -n 2 {RANK} python a.py", "job"),
        (TORCHRUN, "python main.py --a 'b c'", f"{LAUNCHER} main.py --a 'b c'", "node"),
        (TORCHRUN, "A=1 python3 -u main.py", f"A=1 {LAUNCHER} main.py", "node"),
        (TORCHRUN, "python -m pkg.main", f"{LAUNCHER} -m pkg.main", "node"),
        (TORCHRUN, "python -O main.py", f"{LAUNCHER} --no_python python -O main.py", "node"),
        (ONE_NODE, "python main.py", f"{ALONE} main.py", "node"),
        (TORCHRUN, "torchrun --nnodes=2 main.py", "torchrun --nnodes=2 main.py", "node"),
        (TORCHRUN, "python -m torch.distributed.launch a.py", "python -m torch.distributed.launch a.py", "node"),
        (TORCHRUN, "srun python main.py", f"srun {RANK} python main.py", "job"),
        (LIGHTNING, "python main.py --a 1", f"python main.py --a 1 {APPENDED}", "task"),
        (LIGHTNING, "python main.py --gpus 7 --nnodes=9 --a", f"python main.py --a {APPENDED}", "task"),
        (LIGHTNING, "python main.py | tee log", f"python main.py {APPENDED} | tee log", "task"),
        (NUM_NODES, "python m.py --num-nodes 3", "python m.py --num_nodes ${NNODES} --gpus ${NUM_TRAINERS}", "task"),
        (LIGHTNING, "srun python main.py", f"srun {RANK} python main.py", "job"),
        (LIGHTNING, "srun --label -n 4 --mem=2G python m.py", f"srun --label -n 4 --mem=2G {RANK} python m.py", "job"),
    ],
)
def test_a_command_is_started_by_its_launcher_once(
    settings: JobSettings, command: str, text: str, started: str
) -> None:
    found = command_line.plan(settings, command)
    assert (found.text, found.started) == (text, started)


@pytest.mark.parametrize("command", ["bash train.sh", "cd x && python main.py", "deepspeed main.py"])
def test_a_distributed_job_refuses_a_command_that_it_cannot_start(command: str) -> None:
    with pytest.raises(ConfigError, match="begins with python, srun, torchrun"):
        command_line.plan(TORCHRUN, command)


def test_lightning_has_one_task_for_each_gpu_also_in_its_own_srun() -> None:
    for command in ("python main.py", "srun python main.py"):
        assert command_line.is_per_task(LIGHTNING, command_line.plan(LIGHTNING, command))
    assert not command_line.is_per_task(TORCHRUN, command_line.plan(TORCHRUN, "python main.py"))


def test_a_sweep_runs_its_agent_with_the_id() -> None:
    settings = JobSettings(kind="sweep")
    found = command_line.plan(settings, "wandb agent --count 1 a/b/SWEEP_ID", "ab12")
    assert (found.text, found.started) == ("wandb agent --count 1 a/b/ab12", "node")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("a 'b c' \"d $(e f)\" $(g 'h )' i) ${j:-k l}", ["a", "'b c'", '"d $(e f)"', "$(g 'h )' i)", "${j:-k l}"]),
        ("a\\ b c;d&&e|f", ["a\\ b", "c", ";", "d", "&&", "e", "|", "f"]),
        ("a &> log 2>&1", ["a", "&>", "log", "2>&1"]),
        ('a "$(echo "b;c")" d', ["a", '"$(echo "b;c")"', "d"]),
        ('a "${b:-"c d"}" e', ["a", '"${b:-"c d"}"', "e"]),
        ('a "`b "c;d"`" "\\$(" e', ["a", '"`b "c;d"`"', '"\\$("', "e"]),
        ("a $'it\\'s; b' <(c | d) e", ["a", "$'it\\'s; b'", "<(c | d)", "e"]),
        ("a >| log; b 2>|log", ["a", ">|", "log", ";", "b", "2>|log"]),
        ("a b#c $# # it's && d", ["a", "b#c", "$#", "# it's && d"]),
        ("a;# it's\nb", ["a", ";", "# it's", "b"]),
    ],
)
def test_words_are_kept_as_written(command: str, words: list[str]) -> None:
    assert shell_words.split(command) == words


@pytest.mark.parametrize("command", ["a 'b", 'a "b', "a $(b", "a ${b", 'a "$(b"', "a $'b"])
def test_a_quote_without_its_end_is_refused(command: str) -> None:
    with pytest.raises(ConfigError, match="the command has a"):
        shell_words.split(command)


def test_a_comment_inside_the_command_is_noted() -> None:
    found = command_line.plan(JobSettings(), "python main.py # first --lr 1")
    assert found.notes == ("for bash, all from '#' on is a comment: # first --lr 1",)
    assert command_line.plan(JobSettings(), "python main.py 'a # b' --tag=#1").notes == ()


def test_the_command_is_shown_without_the_program_of_a_rank() -> None:
    settings = JobSettings(kind="distributed", launcher="lightning", gpus=2)
    found = command_line.plan(settings, "srun -N 2 python main.py")
    assert found.text != "srun -N 2 python main.py"
    assert found.shown == "srun -N 2 python main.py"
