"""Code that all launch layers share: parses the line, reads the environment, checks the framework, reports problems."""

import importlib.util
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from determined_launch import environment, exit_records, interfaces, ports, rendezvous, settings
from determined_launch.arguments import LaunchLine, parse
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError, UsageError

_EXTRAS = {
    "torch": "pip install 'detent-cluster[pytorch]'",
    "deepspeed": "pip install 'detent-cluster[deepspeed]'",
    "horovod": "make install-launchers (or pip install 'detent-cluster[horovod]')",
}


@dataclass(frozen=True)
class LaunchContext:
    """The circumstances of a launch: environment, arguments and settings."""

    module: str
    line: LaunchLine
    facts: RendezvousFacts
    environ: Mapping[str, str]
    python: str = sys.executable

    @property
    def run_folder(self) -> Path:
        return Path(self.environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR))

    @property
    def exits(self) -> Path:
        return exit_records.folder(self.environ)

    @property
    def own_address(self) -> str:
        return self.facts.addresses[self.facts.rank]

    @property
    def settings(self) -> settings.LaunchSettings:
        return settings.read(self.environ)

    def say(self, text: str) -> None:
        """Writes a line of the layer itself to the log."""
        print(f"{self.module}: {text}", file=sys.stderr, flush=True)


def main(module: str, argv: Sequence[str] | None, launch: Callable[[LaunchContext], int]) -> int:
    """Runs ``launch``. Returns 2 for a line that cannot be used and 1 if something else prevents the start."""
    environ, made = environment.current(), None
    try:
        line = parse(sys.argv[1:] if argv is None else argv, module=module, python=sys.executable)
        if not environ.get(environment.RUN_DIR) and not environ.get(environment.ALLOCATION_ID):
            made = environ[environment.RUN_DIR] = tempfile.mkdtemp(prefix="determined-")  # off the cluster
        return launch(LaunchContext(module, line, _facts(environ), environ))
    except UsageError as error:
        print(f"{module}: {error}", file=sys.stderr, flush=True)
        return 2
    except LaunchError as error:
        print(f"{module}: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def require(module: str, framework: str) -> None:
    """Raises LaunchError if the framework of a layer is not installed."""
    if importlib.util.find_spec(framework) is None:
        raise LaunchError(
            f"{framework} is not installed in this environment ({sys.prefix}). Install it: "
            f"{_EXTRAS[framework]}; or select an environment.image that has it"
        )


def variables(context: LaunchContext, use: str, value: str) -> dict[str, str]:
    """Returns the variables that workers of every layer get in addition to the inherited ones."""
    facts, environ = context.facts, context.environ
    added = {use: value, environment.CHIEF_IP: facts.chief, environment.RUN_DIR: str(context.run_folder)}
    if environment.ALLOCATION_KEY not in environ and facts.nodes == 1:
        added[environment.ALLOCATION_KEY] = secrets.token_hex(32)  # off the cluster all workers are on this machine
    if facts.nodes > 1:
        added |= interfaces.variables(environ, context.own_address)
    if context.settings.hang_seconds:
        added[environment.HANG_TIMEOUT] = str(context.settings.hang_seconds)
    return added


def port(context: LaunchContext, variable: str, default: int) -> int:
    """Returns the allocation's port of this name; a free port off the cluster and inside a worker."""
    text = context.environ.get(variable, "")
    if text.isdigit() and int(text) and not context.environ.get(environment.WORKER_OF):
        return int(text)
    if context.facts.nodes > 1:
        return default
    return ports.free()


def _facts(environ: Mapping[str, str]) -> RendezvousFacts:
    if environ.get(environment.WORKER_OF):
        # A layer that runs inside a worker has that worker's one slot; the outer layer uses the allocation's ports.
        return RendezvousFacts(("127.0.0.1",), 0, (1,))
    return rendezvous.read(environ)
