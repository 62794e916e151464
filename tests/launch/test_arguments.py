"""Parsing of launch lines: overrides, the command, and refusals that show the corrected line."""

import pytest

from determined_launch.arguments import LaunchLine, parse
from determined_launch.errors import UsageError

HARNESS = ("py", "-m", "determined.exec.harness", "m:C")


def parse_words(*words):
    return parse(words, module="determined.launch.torch_distributed", python="py")


@pytest.mark.parametrize(
    ("words", "overrides", "command"),
    [
        (["--trial", "m:C"], (), HARNESS),
        (["--trial=m:C"], (), HARNESS),
        (["--", "--trial", "m:C"], (), HARNESS),
        (["--trial", "src/model_def.py:C"], (), (*HARNESS[:-1], "src/model_def.py:C")),
        (["--trial", "src.model_def:C"], (), (*HARNESS[:-1], "src.model_def:C")),
        (
            ["--host-discovery-script", "find.py", "--", "train.py"],
            ("--host-discovery-script", "find.py"),
            ("py", "train.py"),
        ),
        (["--nnodes", "2", "--", "--trial", "m:C"], ("--nnodes", "2"), HARNESS),
        (["train.py"], (), ("py", "train.py")),
        (["python3", "train.py", "x"], (), ("python3", "train.py", "x")),
        (["--", "./prog", "--trial"], (), ("./prog", "--trial")),
        (["train.py", "a b", "", "--", "--trial", "é"], (), ("py", "train.py", "a b", "", "--", "--trial", "é")),
        (["--", "train.py", "a b", "", "--", "é"], (), ("py", "train.py", "a b", "", "--", "é")),
        (["-m", "x", "--", "train.py", "--", "y"], ("-m", "x"), ("py", "train.py", "--", "y")),
    ],
)
def test_parse_splits_a_launch_line_into_overrides_and_command(words, overrides, command):
    assert parse_words(*words) == LaunchLine(overrides, command)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "nothing to run"),
        (["--"], "nothing to run"),
        (["--nnodes", "2", "--"], "nothing to run"),
        (["--trial"], "needs a class"),
        (["--trial", "m:C", "more", "a b"], "found: more 'a b'"),
        (["--nnodes", "2", "train.py", "x"], "torch_distributed --nnodes 2 -- train.py x"),
        (["--trial", "train.py"], "found: train.py"),
        (["--trial", "m:C", "train.py"], "no script or further arguments; found: train.py"),
        (["--nnodes", "2", "--trial", "m:C", "--", "train.py"], "exclude each other; found --trial and: train.py"),
        (["--nnodes", "2", "train.py", "--", "y"], "torch_distributed --nnodes 2 -- train.py -- y"),
        (["--nnodes=2", "--trial", "m:C"], "torch_distributed --nnodes=2 -- --trial m:C"),
    ],
)
def test_an_invalid_launch_line_is_refused(words, text):
    with pytest.raises(UsageError, match=r".*") as refused:
        parse_words(*words)
    assert text in str(refused.value)
