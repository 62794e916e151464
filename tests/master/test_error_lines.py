"""Recognition of log lines that report an error."""

import pytest

from determined_master.api.schemas.logs import run_of
from determined_master.logs.error_lines import is_error

ERRORS = [
    "Traceback (most recent call last):",
    "[rank=3] Traceback (most recent call last):",
    "[rank0]: Traceback (most recent call last):",
    "\x1b[31mTraceback (most recent call last):\x1b[0m",
    "ValueError: no",
    "ValueError",
    "KeyboardInterrupt\r",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "[rank=0] my_package.errors.SomethingException: it broke",
    "subprocess.CalledProcessError: Command '['false']' returned non-zero exit status 1.",
    "Fatal Python error: Segmentation fault",
    "Segmentation fault (core dumped)",
    "terminate called after throwing an instance of 'c10::Error'",
    "Error: no such file",
    "  + Exception Group Traceback (most recent call last):",
    "train.py: error: the following arguments are required: --lr",
    "[rank=0] train.sh: line 3: foo: command not found",
    "/bin/sh: 1: foo: not found",
    "cannot start 'foo': no such program",
]
PLAIN = [
    "",
    "loss 0.5",
    "Error rate 0.5",
    "errors: 0",
    '  File "x.py", line 1, in Error',
    "no ValueError: here",
    "WARNING: ValueError: retried",
    "UserWarning: be careful",
    "ValueErrors: 3",
    "ErrorRate: 0.1",
    "cache: key not found, computing it",
    "TestException0: x",
    "x" * 400 + " Traceback (most recent call last)",
]


@pytest.mark.parametrize("text", ERRORS)
def test_lines_of_errors_are_recognized(text: str):
    assert is_error("", text)
    assert is_error("INFO", text + " " + "x" * 1000 if text.endswith(":") else text)


@pytest.mark.parametrize("text", PLAIN)
def test_lines_without_errors_are_not_recognized(text: str):
    assert not is_error("", text)
    assert not is_error("WARNING", text)


@pytest.mark.parametrize("level", ["ERROR", "CRITICAL"])
def test_an_error_level_makes_any_line_an_error(level: str):
    assert is_error(level, "all is well")


@pytest.mark.parametrize(
    ("allocation", "run"), [("1.abc.3", 3), (None, 0), ("", 0), ("x.y", 0), ("1.\u0663", 0), ("1." + "9" * 30, 0)]
)
def test_the_run_is_in_the_name_of_the_allocation(allocation: str | None, run: int):
    assert run_of(allocation) == run
