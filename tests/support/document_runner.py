"""Follows a page of the documentation as a reader does: writes its files and runs its commands in order."""

import doctest
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?:\{code-block\} \w+\n *:caption: (?P<file>\S+)\n|(?P<console>console)\n)(?P<body>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_LINES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Step:
    """A file to write at the path ``name``, or a command with its expected output, in which ``...`` matches anything."""

    name: str | None
    text: str
    expected: str = ""


def steps(page: Path) -> Iterator[Step]:
    """Yields the captioned blocks and the commands of the ``console`` blocks of a page."""
    for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        lines = [line.removeprefix(match["indent"]) for line in match["body"].splitlines()]
        if match["file"]:
            yield Step(match["file"], "\n".join(lines).strip("\n") + "\n")
            continue
        starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            yield Step(None, lines[start].removeprefix("$ "), "\n".join(lines[start + 1 : end]))


def write(step: Step, folder: Path) -> None:
    """Writes the file of a step."""
    assert step.name is not None
    path = folder / step.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.text, encoding="utf-8")


def typed(command: str, folder: Path, environ: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Runs a command in a shell. Its errors are part of its output, at the place where a terminal shows them."""
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
    )


def follow(
    page: Path,
    folder: Path,
    environ: Mapping[str, str],
    *,
    prepare: Callable[[str], str] = lambda command: command,
    expect: Callable[[str], str] = lambda expected: expected,
    may_fail: bool = False,
) -> list[str]:
    """Follows a page in ``folder``. Returns the output of each command.

    Args:
        prepare: called with each command; returns what to run instead, and may wait for the moment at which a reader
            would type it.
        expect: called with each expected output; returns what to expect instead.
        may_fail: commands with an expected output may fail, as on a page about mistakes.

    Raises:
        AssertionError: a command failed, or its output is not what the page says.
    """
    outputs = []
    for step in steps(page):
        if step.name is not None:
            write(step, folder)
            continue
        done = typed(prepare(step.text), folder, environ)
        assert done.returncode == 0 or (may_fail and step.expected), f"{page.name}: {step.text}\n{done.stdout}"
        expected = expect(step.expected)
        matches = doctest.OutputChecker().check_output(expected + "\n", done.stdout + "\n", _LINES)
        assert matches or not expected, f"{page.name}: {step.text}\nexpected:\n{expected}\ngot:\n{done.stdout}"
        outputs.append(done.stdout)
    return outputs
