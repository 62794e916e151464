"""``python3 -m determined.launch.autohorovod``: a plain process for one slot, horovod for more."""

import sys
from collections.abc import Sequence

from determined_launch import environment, horovod, launcher, process
from determined_launch.launcher import LaunchContext

MODULE = "determined.launch.autohorovod"


def launch(context: LaunchContext) -> int:
    """Starts this container's part. Overrides are options of horovodrun, so a line with overrides runs horovod."""
    facts = context.facts
    if facts.nodes > 1 or facts.local_slots > 1 or context.line.overrides:
        return horovod.launch(context, MODULE)
    return process.run(context.line.command, {**context.environ, environment.CHIEF_IP: facts.chief})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer and returns the exit code of the process."""
    return launcher.main(MODULE, argv, launch)


if __name__ == "__main__":
    sys.exit(main())
