"""The last boot step of a container: rendezvous, storage probe, then the entrypoint in this process's place.

It runs under the agent's Python, after the hooks; the entrypoint gets the environment that this process was given.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from determined.client import allocations
from determined.client.session import Session
from determined.errors import DeterminedError
from determined.storage import from_config
from determined_launch import environment, process, rendezvous
from determined_launch.environment import RendezvousFacts, TaskFacts

_TRIAL_CLASS = re.compile(r"^[a-zA-Z0-9_.]+:[a-zA-Z0-9_.]+$")


def main() -> int:
    """Returns only where the entrypoint cannot be started."""
    environ = environment.current()
    try:
        facts = TaskFacts.from_environment(environ)
        peers = _meet(facts, environ) if facts is not None else rendezvous.read(environ)
        _probe(environ)
        argv = build(json.loads(environ.get(environment.ENTRYPOINT_JSON) or "null"), peers, _python(environ))
    except DeterminedError as error:
        print(f"determined: {error}", file=sys.stderr, flush=True)
        return 1
    try:
        os.execvpe(argv[0], argv, environ)
    except OSError as error:
        return process.start_failure(argv, error)


def build(entrypoint: Any, peers: RendezvousFacts, python: str) -> list[str]:
    """The argv for a configured entrypoint; a trial class becomes the launch that fits its slots, and this is said."""
    if isinstance(entrypoint, list) and entrypoint:
        return [str(word) for word in entrypoint]
    if not isinstance(entrypoint, str) or not entrypoint.strip():
        raise DeterminedError("the experiment configuration has no entrypoint, so there is nothing to run")
    if not _TRIAL_CLASS.match(entrypoint):
        return ["sh", "-c", entrypoint]
    if peers.total_slots > 1:
        argv = [python, "-m", "determined.launch.torch_distributed", "--", "--trial", entrypoint]
    else:
        argv = [python, "-m", "determined.exec.harness", entrypoint]
    print(f"determined: entrypoint {entrypoint} runs as: {' '.join(argv)}", flush=True)
    return argv


def _python(environ: Mapping[str, str]) -> str:
    return environ.get(environment.TASK_PYTHON) or environ.get(environment.PYTHON_EXECUTABLE) or "python3"


def _meet(facts: TaskFacts, environ: Mapping[str, str]) -> RendezvousFacts:
    """Blocks until all containers of the allocation are here."""
    with Session(facts.master, allocation_token=facts.session_token) as session:
        answer = allocations.rendezvous(session, facts.allocation_id, facts.resources_id)
    peers = RendezvousFacts(
        tuple(str(address) for address in answer["addresses"]),
        int(answer["rank"]),
        tuple(int(count) for count in answer["slots"]),
    )
    rendezvous.write(peers, environ)
    return peers


def _probe(environ: Mapping[str, str]) -> None:
    """A trial whose checkpoints cannot be stored fails before it trains."""
    storage = json.loads(environ.get(environment.EXPERIMENT_CONFIG) or "{}").get("checkpoint_storage")
    if storage and environ.get(environment.TRIAL_ID):
        from_config(storage, environ).probe()


if __name__ == "__main__":
    sys.exit(main())
