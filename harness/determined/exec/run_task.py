"""The last start-up step of a container: rendezvous, storage probe, then the entrypoint replaces this process.

With ``pause`` or ``outputs`` this process stays beside the entrypoint instead. It runs under the agent's Python, after
the hooks; the entrypoint gets the environment of this process.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from determined.client import allocations
from determined.client.session import Session
from determined.errors import DeterminedError
from determined.exec import supervised
from determined.exec.outputs import Outputs
from determined.exec.pausable import Pause
from determined.storage import from_config
from determined.storage.bucket_access import bucket_of
from determined_launch import environment, process, rendezvous
from determined_launch.environment import RendezvousFacts, TaskFacts

_TRIAL_CLASS = re.compile(r"^[a-zA-Z0-9_.]+:[a-zA-Z0-9_.]+$")


def main() -> int:
    """Runs the entrypoint. Returns only if it cannot be started, or at its end with ``pause`` or ``outputs``."""
    environ = environment.current()
    try:
        facts = TaskFacts.from_environment(environ)
        peers = rendezvous.read(environ) if facts is None or rendezvous.is_known(environ) else _meet(facts, environ)
        if not _probe(environ):
            return 1
        entrypoint = json.loads(environment.value_of(environ, environment.ENTRYPOINT_JSON) or "null")
        config = _config(environ)
        argv = build(entrypoint, peers, _python(environ), config.get("legacy_launcher"))
        outputs = Outputs.of(config, environ, facts, _python(environ), rank=peers.rank)
        kept = outputs.restore() if outputs is not None else None
    except DeterminedError as error:
        print(f"determined: {error}", file=sys.stderr, flush=True)
        return 1
    pause = None if is_trial_class(entrypoint) else Pause.of(config)
    if facts is not None and (pause is not None or outputs is not None):
        keep = (lambda: outputs.keep(kept)) if outputs is not None else None
        return supervised.run(argv, environ, pause, facts, has_peers=peers.nodes > 1, at_end=keep)
    try:
        os.execvpe(argv[0], argv, environ)
    except OSError as error:
        return process.start_failure(argv, error)


def build(entrypoint: object, peers: RendezvousFacts, python: str, wanted: str | None = None) -> list[str]:
    """Returns the argv of a configured entrypoint.

    A trial class runs under the launch layer for its slots; the log says so.

    ``wanted`` is the configuration's ``legacy_launcher``.
    """
    if isinstance(entrypoint, list) and entrypoint:
        return [str(word) for word in entrypoint]
    if not isinstance(entrypoint, str) or not entrypoint.strip():
        raise DeterminedError("the experiment configuration has no entrypoint")
    if not is_trial_class(entrypoint):
        return ["sh", "-c", entrypoint]
    argv = _legacy(entrypoint, peers, python, wanted)
    print(f"determined: entrypoint {entrypoint} runs as: {' '.join(argv)}", flush=True)
    return argv


def is_trial_class(entrypoint: object) -> bool:
    """Returns True for ``module:Class``, which learns of a pause from the master by itself."""
    return isinstance(entrypoint, str) and _TRIAL_CLASS.match(entrypoint) is not None


def _legacy(trial: str, peers: RendezvousFacts, python: str, wanted: str | None) -> list[str]:
    if peers.total_slots <= 1:
        return [python, "-m", "determined.exec.harness", trial]
    if wanted == "process":
        print("determined: legacy_launcher: process supports one slot only; using torch_distributed", flush=True)
    layer = "torch_distributed"
    if wanted == "horovod":
        if _has(python, "horovod"):
            layer = "horovod"
        else:
            print(
                f"determined: legacy_launcher: {python} does not have horovod; using torch_distributed",
                flush=True,
            )
    return [python, "-m", f"determined.launch.{layer}", "--", "--trial", trial]


def _has(python: str, module: str) -> bool:
    """Returns True if the task's own Python finds the module."""
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        return subprocess.run([python, "-c", look], stdin=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def _python(environ: Mapping[str, str]) -> str:
    return environ.get(environment.TASK_PYTHON) or environ.get(environment.PYTHON_EXECUTABLE) or "python3"


def _meet(facts: TaskFacts, environ: Mapping[str, str]) -> RendezvousFacts:
    """Blocks until all containers of the allocation have started."""
    with Session(facts.master, allocation_token=facts.session_token) as session:
        answer = allocations.rendezvous(session, facts.allocation_id, facts.resources_id)
    peers = RendezvousFacts(
        tuple(str(address) for address in answer["addresses"]),
        int(answer["rank"]),
        tuple(int(count) for count in answer["slots"]),
    )
    rendezvous.write(peers, environ)
    return peers


def _config(environ: Mapping[str, str]) -> dict[str, Any]:
    return dict(json.loads(environment.value_of(environ, environment.EXPERIMENT_CONFIG) or "{}"))


def _probe(environ: Mapping[str, str]) -> bool:
    """Checks the storage, so that a trial whose checkpoints cannot be stored fails before it trains.

    A bucket is tried under the task's own Python, which has the libraries or not; that process prints its error.
    """
    storage = _config(environ).get("checkpoint_storage")
    if not storage or not environ.get(environment.TRIAL_ID):
        return True
    if bucket_of(storage) is not None:
        argv = [_python(environ), "-m", "determined.exec.probe_storage"]
        return subprocess.run(argv, env=dict(environ), stdin=subprocess.DEVNULL, check=False).returncode == 0
    from_config(storage, environ).probe()
    return True


if __name__ == "__main__":
    sys.exit(main())
