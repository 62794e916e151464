"""The command line for torch.distributed.run: overrides take precedence, and contradictions are refused at once."""

import pytest

from determined_launch import torch_distributed
from determined_launch.arguments import parse
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError

ONE_MACHINE = RendezvousFacts(("10.0.0.1",), 0, (1,))
TWO_MACHINES = RendezvousFacts(("10.0.0.1", "10.0.0.2"), 1, (2, 4))


def plan(facts, *words, port="29401"):
    line = parse(words, module="determined.launch.torch_distributed", python="py")
    return torch_distributed.build(line, facts, port=port, python="py")


def value(argv, option):
    """Returns the value that argparse reads for an option: the last one, in either spelling. Returns None without
    one."""
    names = {f"--{option}", f"--{option.replace('_', '-')}"}
    values = [argv[index + 1] for index, word in enumerate(argv) if word in names]
    values += [word.partition("=")[2] for word in argv if word.partition("=")[0] in names and "=" in word]
    return values[-1] if values else None


def test_the_torch_command_line_on_one_machine():
    assert plan(ONE_MACHINE, "train.py", "x").argv == (
        *("py", "-m", "torch.distributed.run", "--nnodes", "1", "--nproc_per_node", "1", "--max_restarts", "0"),
        *("--node_rank", "0", "--master_addr", "localhost", "--master_port", "29401", "--module"),
        *("determined_launch.wrap_rank", "RANK", "--", "py", "train.py", "x"),
    )


def test_several_machines_get_node_rank_and_master_address():
    argv = plan(TWO_MACHINES, "train.py").argv
    assert [value(argv, name) for name in ("nnodes", "nproc_per_node", "node_rank", "master_addr")] == [
        "2",
        "4",
        "1",
        "10.0.0.1",
    ]


@pytest.mark.parametrize(
    ("words", "option", "expected"),
    [
        (["--nproc_per_node", "3"], "nproc_per_node", "3"),
        (["--nproc-per-node", "3"], "nproc_per_node", "3"),
        (["--nproc-per-node=3"], "nproc_per_node", "3"),
        (["--nproc_per_node", "auto"], "nproc_per_node", "auto"),
        (["--max-restarts", "2"], "max_restarts", "2"),
        (["--master-port", "1234"], "master_port", "1234"),
        (["--rdzv-id", "job"], "rdzv_id", "job"),
        (["--nnodes", "1:2"], "nnodes", "1:2"),
    ],
)
def test_an_override_takes_precedence_over_our_argument(words, option, expected):
    assert value(plan(TWO_MACHINES, *words, "--", "train.py").argv, option) == expected


@pytest.mark.parametrize("word", ["--rdzv_endpoint", "--rdzv-endpoint", "--rdzv_endp"])
def test_a_rendezvous_endpoint_replaces_our_master_address(word):
    argv = plan(TWO_MACHINES, f"{word}=meet:1", "--", "train.py").argv
    assert "--master_addr" not in argv
    assert "--master_port" not in argv
    assert value(argv, "node_rank") == "1"


def test_another_rendezvous_backend_uses_the_chief_as_its_endpoint():
    argv = plan(TWO_MACHINES, "--rdzv-backend", "c10d", "--", "train.py").argv
    assert value(argv, "rdzv_endpoint") == "10.0.0.1:29401"
    assert value(argv, "local_addr") == "10.0.0.2"
    assert "--node_rank" not in argv


def test_standalone_has_no_master_address_and_no_endpoint():
    argv = plan(ONE_MACHINE, "--standalone", "--", "train.py").argv
    assert not {"--master_addr", "--master_port", "--node_rank", "--rdzv_endpoint"} & set(argv)


@pytest.mark.parametrize(
    ("facts", "words", "texts"),
    [
        (TWO_MACHINES, ["--nnodes", "3"], ("--nnodes 3", "2 machines")),
        (TWO_MACHINES, ["--nnodes=1"], ("--nnodes 1", "2 machines")),
        (TWO_MACHINES, ["--nnodes", "3:4"], ("--nnodes 3:4", "2 machines")),
        (ONE_MACHINE, ["--nnodes", "2"], ("--nnodes 2", "1 machine")),
        (TWO_MACHINES, ["--standalone"], ("--standalone", "has 2")),
        (TWO_MACHINES, ["--node-rank", "0"], ("--node_rank 0", "number 1 of 2")),
    ],
)
def test_overrides_that_contradict_the_allocation_are_refused_with_both_numbers(facts, words, texts):
    with pytest.raises(LaunchError) as refused:
        plan(facts, *words, "--", "train.py")
    assert all(text in str(refused.value) for text in texts)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["-m", "--", "pkg.train", "x"], ("py", "-m", "pkg.train", "x")),
        (["--module", "--", "pkg.train"], ("py", "-m", "pkg.train")),
        (["--no-python", "--", "./train.py", "x"], ("./train.py", "x")),
        (["--run-path", "--", "/a/train.py"], ("py", "/a/train.py")),
    ],
)
def test_the_start_flags_choose_how_the_command_is_run(words, command):
    argv = plan(ONE_MACHINE, *words).argv
    assert argv[argv.index("RANK") + 2 :] == command
    assert argv.count("--module") == 1
    assert not {"-m", "--no-python", "--run-path"} & set(argv[3 : argv.index("RANK")])


def test_only_a_positive_max_restarts_lets_torch_restart_workers():
    assert not plan(ONE_MACHINE, "train.py").restarts
    assert plan(ONE_MACHINE, "--max-restarts=3", "--", "train.py").restarts
    assert not plan(ONE_MACHINE, "--max_restarts", "0", "--", "train.py").restarts
