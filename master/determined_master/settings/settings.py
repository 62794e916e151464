"""Settings of the master, checked and frozen."""

import ipaddress
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from determined.config.command import MAX_IDLE_SECONDS
from determined.config.config_merge import merge
from determined.config.launch import Seconds
from determined.config.pool_layers import PoolLayers
from determined.storage.bucket_access import bucket_at
from determined_master.settings import origin_template
from determined_master.settings.database_url import usable_url
from determined_master.settings.pool_settings import PoolSettings, SchedulerSettings, repeated
from determined_master.settings.task_container_defaults import TaskContainerDefaults
from determined_master.settings.tls_files import check_tls_files

DEFAULT_CONTEXT_LIMIT = 99_614_720
MAX_PORT = 65535
PORT_BLOCKS = 500
"""How many blocks of ports there are for workers of trials."""


class Settings(BaseModel):
    """Settings of a master. Times in seconds, sizes in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    tls_cert: Path | None = None
    """File with the certificate that the master presents, followed by those of its authorities, as PEM; with it, the
    master serves by TLS."""
    tls_key: Path | None = None
    """File with the private key of ``tls_cert``, as PEM."""
    data: Path
    """Data folder; default: ``detent`` in ``XDG_DATA_HOME``."""
    database_url: str = ""
    """Database URL: ``postgresql://user:password@host/database``, or ``sqlite:////path``; empty: SQLite inside
    ``data``."""
    database_wait_seconds: float = Field(default=60.0, ge=0)
    """Time for which a start waits for a PostgreSQL server that does not answer yet."""
    cluster_name: str = ""
    """Name of the cluster, which clients display."""
    initial_user_password: str = Field(default="", repr=False)
    """Password of the first users, ``admin`` and ``determined``; default: a generated one in ``data/password``."""
    default_pool: str = "default"
    """Resource pool of experiments and commands with slots that name none."""
    default_aux_pool: str = ""
    """Resource pool of commands without slots that name none; empty: ``default_pool``."""
    resource_pools: tuple[PoolSettings, ...] = ()
    """Resource pools, each with ``pool_name`` and any of ``description``, ``scheduler``,
    ``max_aux_containers_per_agent``, ``max_slots_per_user``, ``max_idle`` and ``provider``; empty: one pool with the
    name of ``default_pool``."""
    preemption: bool = False
    """Running trials leave, with a checkpoint, for jobs of better priority, in pools whose scheduler does not say."""
    scheduler: SchedulerSettings = SchedulerSettings()
    """Scheduler of pools without one of their own: ``type`` (``priority`` or ``fair_share``), ``preemption``,
    ``default_priority`` and ``fitting_policy`` (``best`` or ``worst``)."""
    default_priority: int = Field(default=42, ge=1, le=99)
    """Priority of experiments that name none; smaller is more urgent."""
    agent_reconnect_wait: float = Field(default=25.0, ge=0, le=7 * 86400)
    """Time after which the trials of an unreachable agent start elsewhere."""
    heartbeat_seconds: float = Field(default=5.0, gt=0, le=600)
    """Time between two reports of an agent."""
    context_limit: int = Field(default=DEFAULT_CONTEXT_LIMIT, ge=1)
    """Maximum size of a context; unpacked it may have four times as much."""
    startup_hook: str = ""
    """Shell commands that run in every task before its own ``startup-hook.sh``."""
    task_container_defaults: TaskContainerDefaults = TaskContainerDefaults()
    """Defaults for the containers of tasks; a pool may have its own, which win."""
    checkpoint_storage: dict[str, Any] = Field(default_factory=dict)
    """Default checkpoint storage; empty: shared_fs in ``data/checkpoints``."""
    checkpoint_roots: tuple[Path, ...] = ()
    """Further roots below which this master reads and deletes checkpoints of experiments. ``data/checkpoints`` and
    ``checkpoint_storage`` are always roots."""
    checkpoint_buckets: tuple[str, ...] = ()
    """Places in buckets (``s3://bucket/prefix``) in which this master reads and deletes checkpoints of experiments,
    beside ``checkpoint_storage``. It uses the keys of the experiment's configuration, or its own environment's."""
    legacy_launcher: Literal["torch_distributed", "horovod", "process"] | None = None
    """Default launcher of an entrypoint ``module:Class``."""
    dtrain_network_interface: str = ""
    """Network interface for workers on several machines; empty: the interface of each machine's own address."""
    launch: dict[str, Any] = Field(default_factory=dict)
    """Defaults of the experiments' ``launch`` section."""
    announce: bool = False
    """Print ``ready: URL`` when it serves."""
    log_level: str = "INFO"
    """Level of the master's own log."""
    log_format: Literal["text", "json"] = "text"
    """Form of its lines: for people, or one JSON object a line."""
    authorization: Literal["owner", "open"] = "owner"
    """Who may change an experiment and what belongs to it: its owner and admins, or (``open``) every user. Deleting is
    always the owner's or an admin's."""
    master_logs: Literal["admin", "users"] = "admin"
    """Who may read the master's own log."""
    metrics_access: Literal["users", "everybody"] = "users"
    """Who may read the figures for Prometheus: every user with a token, or everybody without one."""
    base_path: str = Field(default="", pattern=r"^((/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+/?)?$", max_length=200)
    """Path prefix under which a proxy serves this master, unless the proxy sends X-Forwarded-Prefix."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks (``10.0.0.5``, ``10.1.0.0/16``) of the proxies in front of this master. From them alone
    X-Forwarded-For is the address of a sender, which failed sign-ins are counted by; empty: from none. In the
    environment variable they are separated by commas."""
    proxy_port_range: str = Field(default="8100-8199", pattern=r"^[0-9]{1,5}-[0-9]{1,5}$")
    """Ports of this machine, first and last, at which users open pages of tasks: each open page has a port, and so an
    origin, of its own. The master listens on them at ``host`` while pages are open."""
    proxy_domain: str = Field(default="", pattern=r"^([A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*)?$", max_length=190)
    """Domain below which each open page of a task has a subdomain in place of a port, such as ``tasks.example.org``,
    whose every name leads to this master; ``localhost`` suffices for browsers on this machine."""
    proxy_url: str = Field(default="", max_length=500)
    """Address at which users reach such an origin through a proxy in front of this master, such as
    ``https://{label}.tasks.example.org`` or ``https://cluster.example.org:{port}``; empty: as they reach the master."""
    low_disk_bytes: int = Field(default=1 << 30, ge=0)
    """A storage with fewer free bytes is reported as ``low``."""
    stale_file_seconds: float = Field(default=3600.0, ge=60)
    """Age after which aborted uploads and contexts that no experiment names are removed."""
    stale_file_bytes: int = Field(default=10 << 30, ge=0)
    """Total size beyond which they are removed earlier, oldest first, but none younger than ten minutes."""
    max_zero_slot_containers: int = Field(default=100, ge=0)
    """Maximum number of containers without slots on an agent; others wait."""
    max_idle: Seconds | None = Field(default=None, gt=0, le=MAX_IDLE_SECONDS)
    """Longest time, in seconds or such as ``8h``, that a shell runs without a connection: it holds for shells without
    ``idle_timeout`` too. Default: no limit. A pool may have its own."""
    port_blocks: str = Field(default=f"0-{PORT_BLOCKS - 1}", pattern=r"^[0-9]{1,3}-[0-9]{1,3}$")
    """Blocks of ports, first and last of 0 to 499, that this master gives to the workers of trials: block N has 12350 +
    20 N to 12369 + 20 N, and 23000 + 5 N. Two masters whose tasks run on one machine need different blocks."""
    launch_error: bool = True
    """Refuse work that needs more slots than its pool has; else it is accepted with a warning, and waits."""
    store_code: bool = True
    """Store commit, branch, remote and uncommitted changes of the repository from which an experiment is created."""
    webui: Path | None = None
    """Folder of a built page that replaces the included one."""

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for each in proxies:
            ipaddress.ip_network(each, strict=False)
        return proxies

    @field_validator("proxy_port_range")
    @classmethod
    def _check_proxy_ports(cls, ports: str) -> str:
        first, last = map(int, ports.split("-"))
        if not 0 < first <= last <= MAX_PORT:
            raise ValueError(f"{ports} is not FIRST-LAST with 1 ≤ FIRST ≤ LAST ≤ {MAX_PORT}")
        return ports

    @model_validator(mode="after")
    def _check_proxy_url(self) -> Self:
        problem = origin_template.problem(self.proxy_url, has_domain=bool(self.proxy_domain)) if self.proxy_url else ""
        if problem:
            raise ValueError(f"proxy_url: {problem}")
        return self

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        """Raises ValueError for a certificate that the master cannot serve with."""
        check_tls_files(self.tls_cert, self.tls_key)
        return self

    @field_validator(
        "resource_pools", "scheduler", "task_container_defaults", "checkpoint_storage", "launch", mode="before"
    )
    @classmethod
    def _read_json(cls, value: object) -> object:
        """In environment variables they are JSON, as their names have several levels."""
        return json.loads(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_pools(self) -> Self:
        """Raises ValueError for a repeated pool, and for a default pool that does not exist."""
        twice = repeated(self.resource_pools)
        if twice is not None:
            raise ValueError(f'resource_pools has "{twice}" twice')
        for pool in self.resource_pools:
            # As det-agent refuses to: tasks could read what the master's user can read, its data folder too.
            if pool.provider and pool.provider.type == "local" and os.geteuid() and not pool.provider.tasks_as_me:
                raise ValueError(
                    f'tasks of pool "{pool.pool_name}" would run as the user of this master and could read every file '
                    "that it can read; add tasks_as_me: true to the provider to accept this"
                )
        for setting, name in (("default_pool", self.default_pool), ("default_aux_pool", self.default_aux_pool)):
            if name and name not in self.pools:
                raise ValueError(f'{setting} is "{name}", which is none of resource_pools: {", ".join(self.pools)}')
        return self

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, url: str) -> str:
        return usable_url(url) if url else url

    @field_validator("checkpoint_roots", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        """Paths in the environment variable are separated by colons, as in PATH."""
        return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value

    @field_validator("checkpoint_buckets", "trusted_proxies", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        """URLs and addresses in an environment variable are separated by commas."""
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        return [part for part in parts if part] if isinstance(parts, list) else parts

    @field_validator("checkpoint_buckets")
    @classmethod
    def _check_buckets(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            bucket_at(url)
        return urls

    @field_validator("checkpoint_roots")
    @classmethod
    def _check_roots(cls, roots: tuple[Path, ...]) -> tuple[Path, ...]:
        for root in roots:
            if not root.is_absolute() or Path(os.path.normpath(root)) == Path("/"):
                raise ValueError(f"{str(root)!r} is not an absolute path of a folder (other than /)")
        return roots

    @field_validator("port_blocks")
    @classmethod
    def _check_port_blocks(cls, blocks: str) -> str:
        first, last = map(int, blocks.split("-"))
        if not first <= last < PORT_BLOCKS:
            raise ValueError(f"{blocks} is not FIRST-LAST with 0 ≤ FIRST ≤ LAST ≤ {PORT_BLOCKS - 1}")
        return blocks

    @cached_property
    def pools(self) -> dict[str, PoolSettings]:
        """Returns the resource pools by name, in the order of the settings; what a pool leaves out is filled in."""
        pools = self.resource_pools or (PoolSettings(pool_name=self.default_pool),)
        return {each.pool_name: self._filled(each) for each in pools}

    def _filled(self, pool: PoolSettings) -> PoolSettings:
        scheduler = pool.scheduler or self.scheduler
        defaults = {"default_priority": self.default_priority, "preemption": self.preemption}
        missing = {name: value for name, value in defaults.items() if getattr(scheduler, name) is None}
        scheduler = scheduler.model_copy(update=missing)
        limit = pool.max_aux_containers_per_agent
        limit = self.max_zero_slot_containers if limit is None else limit
        return pool.model_copy(update={"scheduler": scheduler, "max_aux_containers_per_agent": limit})

    def pool_for(self, name: str, slots: int) -> str:
        """Returns the pool of work that names ``name``, or none (empty) and asks for ``slots`` slots."""
        return name or (self.default_pool if slots else self.default_aux_pool or self.default_pool)

    def priority_in(self, pool: str) -> int:
        """Returns the priority of work in ``pool`` that names none."""
        found = self.pools.get(pool)
        scheduler = found.scheduler if found else None
        return (scheduler and scheduler.default_priority) or self.default_priority

    def max_idle_in(self, pool: str) -> float | None:
        """Returns the seconds that a service of a pool runs without use at most; None for no limit."""
        found = self.pools.get(pool)
        return self.max_idle if found is None or found.max_idle is None else found.max_idle

    @cached_property
    def pool_layers(self) -> PoolLayers:
        """Returns the ``task_container_defaults`` of each pool over those of the cluster."""
        below = self.task_container_defaults.layer()
        layers = {name: merge(pool.task_container_defaults.layer(), below) for name, pool in self.pools.items()}
        return PoolLayers(layers, self.default_pool, self.default_aux_pool or self.default_pool)

    def hook_in(self, pool: str) -> str:
        """Returns the commands that run in every task of a pool before its own ``startup-hook.sh``."""
        return self._of_pool(pool, "startup_hook") or self.startup_hook

    def interface_in(self, pool: str) -> str:
        """Returns the network interface of workers on several machines of a pool; empty: each machine's own."""
        return self._of_pool(pool, "dtrain_network_interface") or self.dtrain_network_interface

    def _of_pool(self, pool: str, name: str) -> str:
        found = self.pools.get(pool)
        own = getattr(found.task_container_defaults, name) if found else ""
        return str(own or getattr(self.task_container_defaults, name))

    @property
    def port_range(self) -> range:
        first, last = map(int, self.port_blocks.split("-"))
        return range(first, last + 1)

    @property
    def proxy_ports(self) -> range:
        first, last = map(int, self.proxy_port_range.split("-"))
        return range(first, last + 1)

    @property
    def url(self) -> str:
        return self.database_url or f"sqlite+aiosqlite:///{self.data / 'master.sqlite'}"

    @property
    def unpacked_limit(self) -> int:
        """Maximum bytes of the tar of a context: its content, and the headers and padding of many small files."""
        return 4 * self.context_limit

    @property
    def storage_default(self) -> dict[str, Any]:
        return self.checkpoint_storage or {"type": "shared_fs", "host_path": self.own_checkpoints}

    @property
    def storage_folders(self) -> list[str]:
        """Returns the folders of the cluster's own checkpoint storage, which every container may get."""
        folder = self.checkpoint_storage.get("host_path")
        return [self.own_checkpoints, *([str(folder)] if folder else [])]

    @property
    def own_checkpoints(self) -> str:
        """Returns the checkpoint folder that the master chooses if its settings name none."""
        return str(self.data / "checkpoints")
