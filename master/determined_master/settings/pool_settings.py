"""Settings of resource pools, their schedulers and providers. Pools have the names of Determined's master.yaml."""

import re
from collections.abc import Collection, Sequence
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from determined.config.command import MAX_IDLE_SECONDS
from determined.config.findings import nearest
from determined.config.launch import Seconds
from determined_master.settings import slurm_options
from determined_master.settings.task_container_defaults import TaskContainerDefaults

DEFAULT_PRIORITY = 42
PLACEHOLDERS = ("pool", "agent_id", "slots", "master", "token_file")
"""Names that the commands of a provider may hold in braces."""
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")


_TYPES_OF = {
    "launch": ("command",),
    "terminate": ("command",),
    "notice_file": ("command",),
    "notice_command": ("command",),
    "tasks_as_me": ("local",),
    "master_url": ("command", "slurm"),
    "sbatch": ("slurm",),
    "site": ("slurm",),
    "nodes": ("slurm",),
    "folder": ("slurm",),
    "share_account": ("slurm",),
}
"""The types of providers that use a setting; all types use the others."""


class SchedulerSettings(BaseModel):
    """How a pool shares its slots between jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["priority", "fair_share"] = "priority"
    """``priority``: by priority, then by place in the queue. ``fair_share``: slots in proportion to the weights of
    jobs; running trials are always preempted for it."""
    preemption: bool | None = None
    """Running trials leave, with a checkpoint, for jobs of better priority. Default: the master's ``preemption``.
    Always on with ``fair_share``."""
    default_priority: int | None = Field(default=None, ge=1, le=99)
    """Priority of jobs that name none; smaller is more urgent. Default: the master's ``default_priority``."""
    fitting_policy: Literal["best", "worst"] = "best"
    """``best``: the agent with the fewest free slots that suffice; ``worst``: the one with the most."""


class ProviderSettings(BaseModel):
    """How a pool gets agents when its queue needs them, and gives them back. Times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["command", "local", "slurm"]
    """``command``: by the commands ``launch`` and ``terminate``; ``local``: agents are processes on the master's
    machine; ``slurm``: agents run in jobs of Slurm."""
    max_agents: int = Field(ge=1, le=1000)
    """Maximum number of agents that exist at a time; those that start or end count."""
    min_agents: int = Field(default=0, ge=0, le=1000)
    """Number of agents that are kept although nothing needs them."""
    slots_per_agent: int = Field(default=1, ge=1, le=4096)
    """Number of slots of each agent."""
    idle_timeout: float = Field(default=300.0, ge=0, le=1e9)
    """Time after which an agent is ended that holds no container and that nothing in the queue needs."""
    start_timeout: float = Field(default=300.0, gt=0, le=1e9)
    """Time after which an agent is given up that has not registered."""
    command_timeout: float = Field(default=60.0, gt=0, le=1e6)
    """Time after which a command is killed, with all processes that it started."""
    launch: tuple[str, ...] = ()
    """Command that starts one agent, as a list of words; no shell reads it. ``{pool}``, ``{agent_id}``, ``{slots}``,
    ``{master}`` and ``{token_file}`` are replaced."""
    terminate: tuple[str, ...] = ()
    """Command that ends one agent, with the same names; repeated until its exit code is 0."""
    notice_file: str = ""
    """``command``: path of a file with notices of agents that will end, such as spot machines; see *Resource pools*."""
    notice_command: tuple[str, ...] = ()
    """``command``: command that prints such notices, as a list of words; ``{pool}`` is replaced."""
    notice_interval: float = Field(default=5.0, ge=0.1, le=1e6)
    """Time between two looks at the notices."""
    master_url: str = ""
    """Address at which the agents reach this master; default: the one at which it listens, with the name of its machine
    if it listens on all addresses."""
    tasks_as_me: bool = False
    """``local``: accept that tasks run as the master's own user, as with ``det-agent --tasks-as-me``."""
    sbatch: dict[str, str | int | bool] = {}
    """``slurm``: options of the jobs, by sbatch's long names without hyphens, such as ``partition`` and
    ``gpus-per-node``. ``true``: the option has no value."""
    site: str = ""
    """``slurm``: path of a ``SITE.yaml`` with set-up lines, options and variables of all jobs, as ``det batch`` reads
    it."""
    nodes: int = Field(default=1, ge=1, le=1000)
    """``slurm``: number of nodes of each job, with an agent on each; they start together."""
    folder: str = ""
    """``slurm``: folder for the files of the jobs, which the nodes see at the same path. Default: ``detent/slurm`` in
    ``XDG_DATA_HOME``, in the home of the account that started the master."""
    share_account: bool = False
    """``slurm``: accept work of all users of the cluster, although its jobs run as, and are charged to, the account
    that started the master."""

    @field_validator("launch", "terminate", "notice_command")
    @classmethod
    def _check_placeholders(cls, words: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        # One command prints the notices of all agents of a pool.
        known = ("pool",) if info.field_name == "notice_command" else PLACEHOLDERS
        for name in (name for word in words for name in _PLACEHOLDER.findall(word)):
            if name not in known:
                near = nearest(name, known)
                hint = f'did you mean "{{{near}}}"?' if near else "there are " + ", ".join(f"{{{p}}}" for p in known)
                raise ValueError(f'unknown placeholder "{{{name}}}"; {hint}')
        return words

    @field_validator("sbatch")
    @classmethod
    def _check_sbatch(cls, options: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        problems = [text for name, value in options.items() if (text := slurm_options.problem(name, value))]
        if problems:
            raise ValueError("; ".join(problems))
        return options

    @model_validator(mode="after")
    def _check_type(self) -> Self:
        """Raises ValueError for what the type needs and does not have, or has and does not use."""
        for name, types in _TYPES_OF.items():
            if self.type not in types and getattr(self, name) != type(self).model_fields[name].default:
                advice = "the launch command says it to det-agent" if name == "tasks_as_me" else "remove it"
                raise ValueError(f"{name} belongs to providers of type {' and '.join(types)}; {advice}")
        for name in ("launch", "terminate"):
            if self.type == "command" and not any(getattr(self, name)[:1]):
                raise ValueError(f"a provider of type command needs {name}, the words of a command")
        if self.max_agents % self.nodes:
            raise ValueError(f"max_agents ({self.max_agents}) is no multiple of nodes ({self.nodes})")
        if self.min_agents > self.max_agents:
            raise ValueError(f"min_agents ({self.min_agents}) is larger than max_agents ({self.max_agents})")
        return self


class PoolSettings(BaseModel):
    """One resource pool."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool_name: str = Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name by which experiments, commands and agents name the pool."""
    description: str = ""
    """Description, which clients display."""
    scheduler: SchedulerSettings | None = None
    """Default: the master's ``scheduler``."""
    max_aux_containers_per_agent: int | None = Field(default=None, ge=0)
    """Maximum number of containers without slots on an agent. Default: the master's ``max_zero_slot_containers``."""
    max_slots_per_user: int | None = Field(default=None, ge=1)
    """Maximum number of slots that one user's jobs hold at once; further ones wait. Default: no maximum."""
    max_idle: Seconds | None = Field(default=None, gt=0, le=MAX_IDLE_SECONDS)
    """Longest time, such as ``8h``, that a shell runs without a connection; shorter of ``idle_timeout`` and this.
    Default: the master's ``max_idle``."""
    provider: ProviderSettings | None = None
    """Starts agents when the queue needs them, and ends idle ones. Default: only agents that somebody starts."""
    task_container_defaults: TaskContainerDefaults = TaskContainerDefaults()
    """Defaults for the containers of its tasks, over those of the master."""


def unknown(name: str, pools: Collection[str]) -> tuple[str, str]:
    """Returns what is wrong with the name of a pool that does not exist, and a hint with those that do."""
    near = nearest(name, pools)
    hint = f'did you mean "{near}"?' if near else "this cluster has " + ", ".join(f'"{each}"' for each in pools)
    return f'unknown resource pool "{name}"', hint


def repeated(pools: Sequence[PoolSettings]) -> str | None:
    """Returns a name that two of the pools share, or None."""
    names = [pool.pool_name for pool in pools]
    return next((name for name in names if names.count(name) > 1), None)
