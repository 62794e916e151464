"""Launch lines: what is an override, what is run, and what each layer makes of it."""

import pytest

from determined_launch import torch_distributed
from determined_launch.arguments import LaunchLine, UsageError, parse
from determined_launch.environment import RendezvousFacts

ONE = RendezvousFacts(("10.0.0.1",), 0, (1,))
HARNESS = ("py", "-m", "determined.exec.harness", "m:C")


def line(*words):
    return parse(words, module="determined.launch.torch_distributed", python="py")


@pytest.mark.parametrize(
    ("words", "overrides", "command"),
    [
        (["--trial", "m:C"], (), HARNESS),
        (["--trial=m:C"], (), HARNESS),
        (["--", "--trial", "m:C"], (), HARNESS),
        (["--nnodes", "2", "--", "--trial", "m:C"], ("--nnodes", "2"), HARNESS),
        (["train.py"], (), ("py", "train.py")),
        (["python3", "train.py", "x"], (), ("python3", "train.py", "x")),
        (["--", "./prog", "--trial"], (), ("./prog", "--trial")),
        (["train.py", "a b", "", "--", "--trial", "é"], (), ("py", "train.py", "a b", "", "--", "--trial", "é")),
        (["--", "train.py", "a b", "", "--", "é"], (), ("py", "train.py", "a b", "", "--", "é")),
        (["-m", "x", "--", "train.py", "--", "y"], ("-m", "x"), ("py", "train.py", "--", "y")),
    ],
)
def test_lines(words, overrides, command):
    assert line(*words) == LaunchLine(overrides, command)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "nothing to run"),
        (["--"], "nothing to run"),
        (["--nnodes", "2", "--"], "nothing to run"),
        (["--trial"], "needs a class"),
        (["--trial", "m:C", "more", "a b"], "found: more 'a b'"),
        (["--nnodes", "2", "train.py", "x"], "torch_distributed --nnodes 2 -- train.py x"),
        (["--nnodes=2", "--trial", "m:C"], "torch_distributed --nnodes=2 -- --trial m:C"),
    ],
)
def test_refused(words, text):
    with pytest.raises(UsageError, match=r".*") as refused:
        line(*words)
    assert text in str(refused.value)


def test_torch_distributed_one_machine():
    argv = torch_distributed.build(line("train.py", "x"), ONE, port="29401", python="py")
    assert argv == [
        *("py", "-m", "torch.distributed.run", "--nnodes", "1", "--nproc_per_node", "1", "--node_rank", "0"),
        *("--max_restarts", "0", "--master_addr", "localhost", "--master_port", "29401", "--module"),
        *("determined_launch.wrap_rank", "RANK", "--", "py", "train.py", "x"),
    ]


def test_torch_distributed_several_machines_and_overrides_last():
    facts = RendezvousFacts(("10.0.0.1", "10.0.0.2"), 1, (2, 4))
    argv = torch_distributed.build(line("--nproc_per_node", "3", "--", "train.py"), facts, port="1", python="py")
    assert argv[argv.index("--master_addr") + 1] == "10.0.0.1"
    assert argv[argv.index("--node_rank") + 1] == "1"
    counts = [argv[index + 1] for index, word in enumerate(argv) if word == "--nproc_per_node"]
    assert counts == ["4", "3"]


def test_variables():
    assert torch_distributed.variables(ONE, {"DET_ALLOCATION_KEY": "k"}) == {
        "USE_TORCH_DISTRIBUTED": "True",
        "DET_CHIEF_IP": "10.0.0.1",
    }
    assert len(torch_distributed.variables(ONE, {})["DET_ALLOCATION_KEY"]) == 64
