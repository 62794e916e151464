"""The configuration of a command or a shell: a container with its own slots, outside of any experiment."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from determined.config import support
from determined.config.config_merge import merge, without_nulls
from determined.config.default_name import random_words
from determined.config.environment import Environment
from determined.config.experiment import BindMount
from determined.config.findings import Finding
from determined.config.launch import Seconds
from determined.config.model import Entrypoint, Model
from determined.config.pool_layers import PoolLayers
from determined.config.resources import DeviceFile, device_of, size_of
from determined.config.schema_check import of_model
from determined.config.whole_numbers import with_whole_numbers

MAX_DESCRIPTION_CHARACTERS = 1000
NOTHING = ["true"]
"""What runs where there is no entrypoint: Determined accepts that too."""
KEEP_ALIVE = ["sh", "-c", "while :; do sleep 86400; done"]
"""The program of a shell, which every image can run: it keeps the container that people enter."""
MAX_IDLE_SECONDS = 31_536_000
"""A year."""


class CommandResources(Model):
    """The number of slots, and the pool that provides them. 0 slots: the command runs beside the slots of an agent."""

    slots: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    weight: Annotated[float, Field(gt=0)] = 1
    priority: Annotated[int, Field(ge=1, le=99)] | None = None
    resource_pool: str = ""
    shm_size: Annotated[int, BeforeValidator(size_of)] | None = None
    devices: list[Annotated[DeviceFile, BeforeValidator(device_of)]] = []
    is_single_node: bool | None = None
    agent_label: str = ""
    max_slots: int | None = None
    native_parallel: bool = False


class CommandConfig(Model):
    """A checked configuration of a command or a shell with every default filled in."""

    description: Annotated[str, Field(max_length=MAX_DESCRIPTION_CHARACTERS)]
    entrypoint: Entrypoint
    environment: Environment = Environment()
    resources: CommandResources = CommandResources()
    bind_mounts: list[BindMount] = []
    work_dir: str | None = None
    debug: bool = False
    idle_timeout: Annotated[Seconds | None, Field(ge=0, le=MAX_IDLE_SECONDS)] = None
    """Seconds after which a shell ends that nobody has entered; 0 for never."""
    notebook_idle_type: str | None = None
    tensorboard_args: list[str] | None = None
    slurm: dict[str, Any] = {}
    pbs: dict[str, Any] = {}


@dataclass(frozen=True)
class CheckedCommand:
    """The result of a check. ``config`` is None if and only if there are errors."""

    config: dict[str, Any] | None
    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = field(default=())


def check_command(
    data: Mapping[str, Any],
    has_containers: bool = False,
    pools: PoolLayers | None = None,
    *,
    seed: int | None = None,
) -> CheckedCommand:
    """Checks the configuration of a command and fills in what it leaves open. ``seed`` fixes the default description.

    ``has_containers`` is True if the cluster has agents that run tasks in containers. ``pools``: what is merged below
    it for the pool that it names.

    >>> check_command({"entrypoint": ["ls"], "resources": {"slot": 2}}).errors[0].message
    'unknown field "slot" in resources'
    """
    own = without_nulls(with_whole_numbers(data, CommandConfig))
    below = {"description": f"Command ({random_words(random.Random(seed))})", "entrypoint": NOTHING}
    findings: tuple[Finding, ...] = tuple(support.check_command(own, has_containers=has_containers))
    if "entrypoint" not in own:
        text = "there is no entrypoint, so the command does nothing"
        findings += (Finding("W506", ("entrypoint",), text, severity="warning"),)
    return _checked(own, merge(own, below), findings, pools)


def check_shell(
    data: Mapping[str, Any],
    has_containers: bool = False,
    pools: PoolLayers | None = None,
    *,
    seed: int | None = None,
) -> CheckedCommand:
    """Checks the configuration of a shell; the parameters are those of ``check_command``. Its program is always the
    one that keeps its container.

    >>> check_shell({"idle_timeout": "30m"}).config["idle_timeout"]
    1800.0
    """
    own = without_nulls(with_whole_numbers(data, CommandConfig))
    below = {"description": f"Shell ({random_words(random.Random(seed))})"}
    findings = tuple(support.check_command(own, support.WARNED_OF_SHELLS, has_containers=has_containers))
    return _checked(own, {**merge(own, below), "entrypoint": KEEP_ALIVE}, findings, pools)


def _checked(
    own: Mapping[str, Any], merged: Mapping[str, Any], findings: tuple[Finding, ...], pools: PoolLayers | None
) -> CheckedCommand:
    merged = merge(merged, pools.below(own, "slots", CommandConfig.model_fields) if pools else {})
    findings = (*of_model(CommandConfig, merged, ()), *findings)
    errors = tuple(each for each in findings if each.severity == "error")
    if errors:
        return CheckedCommand(None, errors)
    return CheckedCommand(CommandConfig.model_validate(merged).to_json(), warnings=findings)
