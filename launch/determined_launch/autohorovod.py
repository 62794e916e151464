"""``python3 -m determined.launch.autohorovod``: a plain process for one slot, horovod for more."""

import sys
from collections.abc import Sequence

from determined_launch import environment, horovod, process, rendezvous
from determined_launch.arguments import UsageError, parse

MODULE = "determined.launch.autohorovod"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer; its exit code is the process's."""
    words = sys.argv[1:] if argv is None else argv
    environ = environment.current()
    try:
        line = parse(words, module=MODULE, python=sys.executable)
    except UsageError as error:
        print(f"{MODULE}: {error}", file=sys.stderr, flush=True)
        return 2
    facts = rendezvous.read(environ)
    if facts.nodes > 1 or facts.local_slots > 1:
        return horovod.main(words)
    return process.run(line.command, {**environ, environment.CHIEF_IP: facts.chief})


if __name__ == "__main__":
    sys.exit(main())
