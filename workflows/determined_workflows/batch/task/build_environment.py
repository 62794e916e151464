"""Builds the virtual environment of a project as a job; the packages that it imports are copied beside it."""

from __future__ import annotations

import sys
from pathlib import Path

from determined.environments import build, read_inputs
from determined.environments.inputs import files_of
from determined.errors import DeterminedError


def main(words: list[str]) -> int:
    """Builds ``FOLDER/venv`` from ``MAIN`` of the folder ``PROJECT``: the words are PROJECT, MAIN, FOLDER."""
    project, name, folder = Path(words[0]), words[1], Path(words[2])
    try:
        build(read_inputs(name, None, files_of(project)), project, folder)
    except DeterminedError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
