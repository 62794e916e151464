"""``python -m determined.environments FOLDER``: builds the environment of a list of requirements, without a cluster."""

import argparse
import sys
from pathlib import Path

from determined.environments.build import VENV, build
from determined.environments.inputs import files_of, read_inputs
from determined.errors import DeterminedError


def main(arguments: list[str] | None = None) -> int:
    """Builds the environment and prints its folder. Returns the exit code."""
    parser = argparse.ArgumentParser("python -m determined.environments", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of all environments; this one gets a folder by its hash")
    parser.add_argument("--context", type=Path, default=Path(), help="folder with the files; default: this folder")
    parser.add_argument(
        "--requirements",
        default="requirements.txt",
        help="requirements.txt, Pipfile, uv.lock or pyproject.toml, relative to the context",
    )
    parser.add_argument("--python", help="version, 3.11 for example; default: that of this Python")
    asked = parser.parse_args(arguments)
    context: Path = asked.context.resolve()

    try:
        inputs = read_inputs(asked.requirements, asked.python, files_of(context))
        own = ".".join(map(str, sys.version_info[:3]))
        folder = asked.folder.resolve() / inputs.key(own, sys.base_prefix)
        build(inputs, context, folder, say=lambda line: print(line, file=sys.stderr, flush=True))
    except DeterminedError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    print(folder / VENV)
    return 0


if __name__ == "__main__":
    sys.exit(main())
