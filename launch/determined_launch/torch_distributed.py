"""``python3 -m determined.launch.torch_distributed [overrides --] (--trial m:C | script args…)``.

The same line runs in every container of the allocation; each starts its own ``torch.distributed.run``.
"""

import secrets
import sys
from collections.abc import Mapping, Sequence

from determined_launch import environment, process, rendezvous
from determined_launch.arguments import LaunchLine, UsageError, parse
from determined_launch.environment import RendezvousFacts

MODULE = "determined.launch.torch_distributed"
DEFAULT_PORT = "29400"


def build(line: LaunchLine, facts: RendezvousFacts, *, port: str, python: str) -> list[str]:
    """The argv of ``torch.distributed.run``. Overrides come after ours, so that argparse lets them win."""
    return [
        python,
        "-m",
        "torch.distributed.run",
        "--nnodes",
        str(facts.nodes),
        "--nproc_per_node",
        str(max(1, facts.local_slots)),
        "--node_rank",
        str(facts.rank),
        "--max_restarts",
        "0",
        "--master_addr",
        "localhost" if facts.nodes == 1 else facts.chief,
        "--master_port",
        port,
        "--module",
        *line.overrides,
        # RANK before the "--": argparse gives everything from the first positional on to the module untouched
        "determined_launch.wrap_rank",
        "RANK",
        "--",
        *line.command,
    ]


def variables(facts: RendezvousFacts, environ: Mapping[str, str]) -> dict[str, str]:
    """What the workers find in their environment beside what was there."""
    added = {environment.USE_TORCH_DISTRIBUTED: "True", environment.CHIEF_IP: facts.chief}
    if environment.ALLOCATION_KEY not in environ and facts.nodes == 1:
        added[environment.ALLOCATION_KEY] = secrets.token_hex(32)  # off the cluster: this machine's workers alone
    return added


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer; its exit code is the launcher's."""
    environ = environment.current()
    try:
        line = parse(sys.argv[1:] if argv is None else argv, module=MODULE, python=sys.executable)
    except UsageError as error:
        print(f"{MODULE}: {error}", file=sys.stderr, flush=True)
        return 2
    facts = rendezvous.read(environ)
    command = build(line, facts, port=environ.get(environment.C10D_PORT, DEFAULT_PORT), python=sys.executable)
    return process.run(command, {**environ, **variables(facts, environ)})


if __name__ == "__main__":
    sys.exit(main())
