"""The error and the place that are read from a program's output."""

import subprocess
import sys

import pytest

from determined_launch.tracebacks import MAX_CHARACTERS, MAX_LINES_AFTER, TracebackReader

LIBRARY = '  File "/venv/lib/python3.11/site-packages/torch/nn/functional.py", line 9, in linear'
START = "Traceback (most recent call last):"


def read(*lines):
    reader = TracebackReader()
    for line in lines:
        reader.feed([line])
    return reader.error, reader.place


def test_the_place_is_the_last_one_outside_of_libraries():
    own = '  File "/work/experiments/ppo.py", line 41, in step'
    called = [f'  File "/x/{name}/core.py", line 1, in f' for name in ("determined", "determined_workflows")]
    lines = [START, own, "    self.loss()", "    ^^^^^^^^^^^", *called, LIBRARY, "RuntimeError: shapes", "after"]
    assert read(*lines) == ("RuntimeError: shapes", "/work/experiments/ppo.py:41")


def test_a_traceback_of_libraries_alone_gives_its_last_place():
    assert read(START, LIBRARY, "E: x") == ("E: x", LIBRARY.split('"')[1] + ":9")


def test_the_last_complete_traceback_counts_and_one_without_an_end_does_not():
    first = [START, '  File "a.py", line 1, in f', "KeyError: 1", "", "During handling of the above exception"]
    second = [START, '  File "b.py", line 2, in g', "ValueError: 2"]
    assert read(*first, *second, START, '  File "c.py", line 3, in h') == ("ValueError: 2", "b.py:2")


def test_a_traceback_that_many_lines_follow_is_forgotten():
    shown = [START, '  File "a.py", line 1, in f', "KeyError: 1"]
    assert read(*shown, *["a line"] * MAX_LINES_AFTER) == ("KeyError: 1", "a.py:1")
    assert read(*shown, *["a line"] * (MAX_LINES_AFTER + 1)) == ("", "")


@pytest.mark.parametrize(
    "error", ["TypeError: unsupported operand type(s) for |: 'int' and 'str'", "ValueError: a | b"]
)
def test_a_bar_in_an_error_stays(error):
    assert read(START, '  File "a.py", line 1, in f', error)[0] == error
    group = [f"  + Exception Group {START}", '  |   File "a.py", line 1, in f', f"  | {error}"]
    assert read(*group) == (error, "a.py:1")


def test_a_long_error_is_shortened():
    error, _ = read(START, '  File "a.py", line 1, in f', "E: " + "x" * 10_000)
    assert len(error) == MAX_CHARACTERS


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def f():\n    raise KeyError('x')\nf()", "KeyError: 'x'"),
        ("try:\n    raise KeyError('x')\nexcept KeyError as e:\n    raise ValueError('y') from e", "ValueError: y"),
        ("raise ExceptionGroup('two', [ValueError('a')])" if sys.version_info >= (3, 11) else "raise V", None),
    ],
)
def test_the_traceback_of_a_real_program_is_read(tmp_path, monkeypatch, text, error):
    (tmp_path / "fails.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "fails.py")
    lines = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False).stderr.splitlines()
    read_error, place = read(*lines)
    assert read_error == (error or "ExceptionGroup: two (1 sub-exception)")
    assert place.startswith("fails.py:")


def test_an_error_with_a_long_message_is_kept() -> None:
    reader = TracebackReader()
    lines = [f"\tsize mismatch for layer{number}.weight" for number in range(30)]
    reader.feed(["Traceback (most recent call last):", '  File "train.py", line 3, in <module>'])
    reader.feed(["RuntimeError: Error(s) in loading state_dict for Net:", *lines])
    assert (reader.error, reader.place) == ("RuntimeError: Error(s) in loading state_dict for Net:", "train.py:3")
