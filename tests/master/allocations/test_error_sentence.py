"""The sentence about the cause, taken from the last lines of programs that fail."""

import subprocess
import sys
from pathlib import Path

import pytest

from determined.link.messages import ContainerExit, RankExit
from determined.states import ExitReason
from determined_master.allocations.error_sentence import ErrorSentence, find
from determined_master.allocations.failures import ContainerEnd, cause_of

ARGPARSE = "import argparse; p = argparse.ArgumentParser(); p.add_argument('--lr', required=True); p.parse_args()"
GROUP = "raise ExceptionGroup('two', [ValueError('a'), TypeError('b')])"
HANDLED = """
import logging, sys
try:
    print("loss 0.3")
    open("data.yaml")
except OSError:
    logging.warning("no data.yaml, trying again")
    sys.exit("data.yaml has no key 'train'")
"""


def output_of(argv: list[str], folder: Path) -> tuple[list[str], str, int]:
    """Returns the lines of both streams, the last line of stderr and the exit code."""
    done = subprocess.run(argv, capture_output=True, text=True, cwd=folder, check=False)
    errors = done.stderr.splitlines()
    return [*done.stdout.splitlines(), *errors], errors[-1] if errors else "", done.returncode


def python(text: str, folder: Path) -> list[str]:
    (folder / "train.py").write_text(text)
    return [sys.executable, str(folder / "train.py")]


def cause(argv: list[str], folder: Path) -> str:
    lines, stderr, code = output_of(argv, folder)
    exit_ = ContainerExit(kind="exited", code=code, message="\n".join(["it exited:", *lines]), last_stderr=stderr)
    return cause_of(ExitReason.ERRORED, "", [ContainerEnd("a", exit_)]) or ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ARGPARSE, "train.py: error: the following arguments are required: --lr (exit code 2)"),
        (HANDLED, "data.yaml has no key 'train' (exit code 1)"),
        (GROUP, "ExceptionGroup: two (2 sub-exceptions): ValueError: a; TypeError: b (train.py:1, exit code 1)"),
        ("def f():\n    json.loads('{')\nimport json\nf()", "(train.py:2, exit code 1)"),
        ("x x", "SyntaxError: invalid syntax (train.py:1, exit code 1)"),
        ("import os; print('loss 0.3', flush=True); os._exit(3)", "the process exited with code 3"),
        ("import os, sys; print('epoch 1: 50%|###', file=sys.stderr); os._exit(3)", "the process exited with code 3"),
    ],
)
def test_the_cause_of_a_python_program_is_its_own_sentence(text: str, expected: str, tmp_path: Path):
    folder = tmp_path / "workdir"
    folder.mkdir()
    assert cause(python(text, folder), folder).endswith(expected)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("foo --x", "train.sh: line 1: foo: command not found (exit code 127)"),
        ("echo 1\ncat < missing.txt", "train.sh: line 2: missing.txt: No such file or directory (exit code 1)"),
        ("echo 'the data set is empty' >&2; exit 4", "the data set is empty (exit code 4)"),
        ("kill -SEGV $$", "the process had a segmentation fault (signal 11, SIGSEGV)"),
        ("exit 137", "the process was killed by signal 9 (SIGKILL)"),
        ("exit 143", "the process was terminated by signal 15 (SIGTERM)"),
        ("exit 139", "the process had a segmentation fault (signal 11, SIGSEGV)"),
        ("if", "(exit code 2)"),
    ],
)
def test_the_cause_of_a_shell_script_is_the_line_of_the_shell(script: str, expected: str, tmp_path: Path):
    (tmp_path / "train.sh").write_text(script)
    assert cause(["bash", "train.sh"], tmp_path).endswith(expected)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["ERROR: [41] __main__: model_def has no class Nope; it has MyTrial"],
            ErrorSentence("model_def has no class Nope; it has MyTrial"),
        ),
        (
            [
                "determined: entrypoint model_def:Nope runs as: python3",
                "determined: checkpoint_storage: no such bucket",
            ],
            ErrorSentence("checkpoint_storage: no such bucket"),
        ),
        (["determined: entrypoint model_def:Nope runs as: python3"], ErrorSentence()),
        (
            ["determined.launch.layer: it is not installed"],
            ErrorSentence("determined.launch.layer: it is not installed"),
        ),
        (["cannot start 'trane': no such program"], ErrorSentence("cannot start 'trane': no such program")),
        (
            [
                "START   prepare",
                "SUCCEED prepare",
                "START   train",
                "Traceback (most recent call last):",
                '  File "/r/workdir/src/fit.py", line 9, in <module>',
                "KeyError: 'x'",
                "FAIL    train: exit code 3",
            ],
            ErrorSentence("command train: KeyError: 'x'", "src/fit.py:9", 3),
        ),
        (
            [
                "START   train",
                "no such data set",
                "validation metrics after 1 steps: x 0",
                "FAIL    train: exit code 3",
            ],
            ErrorSentence("command train: no such data set", code=3),
        ),
        (["START   train", "FAIL    train: exit code 3"], ErrorSentence("command train failed", code=3)),
        (
            ["START   train", "FAIL    train: exit code 1", "ValueError: later on another stream"],
            ErrorSentence("command train: ValueError: later on another stream", code=1),
        ),
        (
            ["startup-hook.sh: line 3: foo: command not found", "ERROR: startup-hook.sh, line 3: exit code 127"],
            ErrorSentence("startup-hook.sh: line 3: foo: command not found"),
        ),
        (
            ["ERROR: No matching distribution found for x", "ERROR: startup-hook.sh, line 2: exit code 1"],
            ErrorSentence("No matching distribution found for x", "startup-hook.sh:2"),
        ),
        (["Error: Missing option '--lr'."], ErrorSentence("Error: Missing option '--lr'.")),
        (
            ["python3: can't open file '/r/workdir/trian.py': [Errno 2] No such file or directory"],
            ErrorSentence("python3: can't open file '/r/workdir/trian.py': [Errno 2] No such file or directory"),
        ),
        (
            [
                "Traceback (most recent call last):",
                '  File "/r/workdir/train.py", line 12, in main',
                '  File "/env/lib/python3.12/site-packages/torch/nn/module.py", line 1, in forward',
                "RuntimeError: bad shape",
            ],
            ErrorSentence("RuntimeError: bad shape", "train.py:12"),
        ),
        (["10%|#\r20%|##\rValueError: late"], ErrorSentence("ValueError: late")),
    ],
)
def test_the_sentence_of_our_own_programs_and_tools_is_found(lines: list[str], expected: ErrorSentence):
    assert find(lines) == expected


def test_a_worker_that_exits_with_a_text_gives_it_as_the_cause():
    rank = RankExit(
        rank=0, code=1, host="n", last_lines=["[rank=0] loss 1"], time=1.0, last_stderr="[rank=0] no data in /d"
    )
    end = ContainerEnd("a", ContainerExit(kind="exited", code=1, ranks=[rank]))
    assert cause_of(ExitReason.ERRORED, "", [end]) == "rank 0 on n: no data in /d (exit code 1)"


def test_long_lines_are_searched_in_time_linear_in_their_length():
    lines = ["a: " * 1300, ": " * 2000, "A" * 4000, "a.A" * 1300, "FAIL    " + "x: " * 1300, "x: line 1: " * 360] * 8
    assert find(lines, "x" * 4000).text
