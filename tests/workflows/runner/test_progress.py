"""The progress line: drawn on a terminal, and absent elsewhere."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from determined_workflows.runner.console import Console, TaskCounts

CLEAR = "\r\x1b[K"
GRID = """\
resource: [0, 1]
template:
  work: '[ {n} != 3 ]'
---
n: [1, 2, 3, 4, 5, 6]
"""


def in_terminal(folder: Path, columns: int) -> str:
    """Returns the output of a run in a terminal, with CR LF as LF."""
    (folder / "params.yaml").write_text(GRID)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "determined_cli", "runner", "run", "-v"],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    ):
        os.close(theirs)
        output = b""
        try:
            while data := os.read(ours, 65536):
                output += data
        except OSError:  # the last process with the terminal has ended
            pass
    os.close(ours)
    return output.decode().replace("\r\n", "\n")


def split_progress(text: str) -> tuple[list[str], list[str]]:
    """Returns the lines that remain on the screen, and the progress lines that were overwritten."""
    remaining, drawn = [], []
    for line in text.split("\n"):
        *before, last = line.split(CLEAR)
        drawn += [text for text in before if text]
        remaining.append(last)
    return remaining, drawn


def test_a_terminal_shows_progress_below_the_lines(folder: Path) -> None:
    remaining, drawn = split_progress(in_terminal(folder, 80))
    assert remaining[0] == "Orphan params: set()"
    assert sum(line.startswith("START") for line in remaining) == 6
    assert sum(line.startswith("SUCCEED") for line in remaining) == 5
    assert remaining[-3:] == ["Failed tasks: 1/6", "    output/N_3", ""]
    assert drawn
    pattern = r"\d running, \d failed, \d/6 done(, \d+:\d\d to go)?"
    assert all(re.fullmatch(pattern, line) for line in drawn)
    assert all(len(line) < 80 for line in drawn)


def test_the_progress_line_of_a_narrow_terminal_is_cut(folder: Path) -> None:
    _, drawn = split_progress(in_terminal(folder, 12))
    assert drawn
    assert {len(line) for line in drawn} == {11}


def test_a_stream_that_is_no_terminal_gets_no_progress_line(folder: Path) -> None:
    stream = io.StringIO()
    console = Console(TaskCounts(2), ["train"], stream=stream)
    console.event("START", "0", "train", 1, Path("output/N_1"))
    console.tick()
    console.end_progress()
    assert stream.getvalue() == "START   gpu: 0, train: 1/ 2, output/N_1\n"


def test_the_progress_line_estimates_the_remaining_time() -> None:
    assert TaskCounts(10, finished=2, failed=1, skipped=1).line(60) == "0 running, 1 failed, 4/10 done, 2:00 to go"
    assert TaskCounts(10, running=2).line(60) == "2 running, 0 failed, 0/10 done"
    assert TaskCounts(3000, running=2, finished=1).line(60) == "2 running, 0 failed, 1/3000 done, 49:59:00 to go"
    assert TaskCounts(1, finished=1).line(60) == "0 running, 0 failed, 1/1 done"
