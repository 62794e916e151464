"""Checks a task's checkpoint storage, under the Python that will write to it: it needs that Python's libraries."""

import json
import sys

from determined.errors import StorageError
from determined.storage import from_config
from determined_launch import environment


def main() -> int:
    """Writes and removes a small object. Returns the exit code; an error is printed."""
    environ = environment.current()
    config = json.loads(environment.value_of(environ, environment.EXPERIMENT_CONFIG) or "{}")
    try:
        from_config(config["checkpoint_storage"], environ).probe()
    except StorageError as error:
        print(f"determined: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
