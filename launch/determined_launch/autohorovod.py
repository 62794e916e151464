"""``python3 -m determined.launch.autohorovod``: a plain process for one slot, horovod for more."""

import sys
from collections.abc import Sequence

from determined_launch import environment, horovod, layer, process
from determined_launch.layer import Situation

MODULE = "determined.launch.autohorovod"


def launch(situation: Situation) -> int:
    """Starts this container's part. Overrides speak of horovodrun, so they ask for it."""
    facts = situation.facts
    if facts.nodes > 1 or facts.local_slots > 1 or situation.line.overrides:
        return horovod.launch(situation, MODULE)
    return process.run(situation.line.command, {**situation.environ, environment.CHIEF_IP: facts.chief})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer; its exit code is the process's."""
    return layer.main(MODULE, argv, launch)


if __name__ == "__main__":
    sys.exit(main())
