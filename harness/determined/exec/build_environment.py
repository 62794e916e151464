"""Builds a Python environment on its agent: the entrypoint of a task without slots, in the folder of the context."""

import json
import sys
from pathlib import Path

from determined.environments import VENV, BuildFailed, build
from determined.environments.build import BASE_FILE
from determined.environments.inputs import files_of, wanted_inputs
from determined.errors import ConfigError
from determined_launch import environment


def main() -> int:
    """Builds the environment that the agent names, and returns the exit code. The log has the installer's output."""
    environ = environment.current()
    order = json.loads(environ.get(environment.ENVIRONMENT_TO_BUILD) or "null")
    if order is None:
        print("determined: only the master starts this, to build an environment", file=sys.stderr)
        return 2
    context, folder = Path.cwd(), Path(order["folder"])

    try:
        build(wanted_inputs(order, files_of(context)), context, folder, environ)
        # Attempts have a base of their own, at other paths than this one.
        for file in (folder / VENV).glob(f"lib/python3*/site-packages/{BASE_FILE}"):
            file.unlink()
    except (BuildFailed, ConfigError) as problem:
        print(f"ERROR: {problem}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
