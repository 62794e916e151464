"""Builds the driver and the hooks of an agent from its settings: processes of the machine, or containers."""

import asyncio
import os
from collections.abc import Callable, Sequence, Set
from typing import Protocol

from determined.errors import DeterminedError
from determined.link.messages import SlotFacts
from determined_agent.accelerators.slot_monitor import SlotMonitor
from determined_agent.drivers.docker import DockerDriver
from determined_agent.drivers.driver import Driver, OutputLimits, ProcessOptions
from determined_agent.drivers.engine import Engine
from determined_agent.drivers.process import ProcessDriver
from determined_agent.drivers.shim_forks import ShimForks
from determined_agent.environments.environment_store import Environments
from determined_agent.environments.harness_copy import keep_shim
from determined_agent.environments.task_python import PythonProbe
from determined_agent.hooks.container_environment import ContainerEnvironmentHook
from determined_agent.hooks.container_mounts import ContainerMountsHook, HostAccessHook
from determined_agent.hooks.container_network import ContainerNetworkHook
from determined_agent.hooks.devices import DevicesHook
from determined_agent.hooks.environment import EnvironmentHook
from determined_agent.hooks.files import FilesHook
from determined_agent.hooks.hook import Hook
from determined_agent.hooks.identity import IdentityHook
from determined_agent.hooks.mounts import MountsHook
from determined_agent.hooks.proxy_ports import ProxyPortsHook
from determined_agent.hooks.requirements import RequirementsHook
from determined_agent.host_access.access import ClusterFolders, HostAccess
from determined_agent.host_access.host_mounts import HostMounts
from determined_agent.host_access.mount_probe import can_mount
from determined_agent.images.image_cleanup import ImageCleanup
from determined_agent.images.image_store import DEFAULT_IMAGES, Images
from determined_agent.images.pulled_images import PulledImages
from determined_agent.master_link.contexts import Contexts
from determined_agent.settings import Settings
from determined_agent.streams.container_entry import ContainerEntry
from determined_agent.streams.process_entry import ProcessEntry
from determined_agent.streams.program import TaskEntry


class WarmHook(Hook, Protocol):
    """A hook with steps that can be done before the first container."""

    async def warm(self) -> None: ...


class Runtime:
    """How an agent runs tasks."""

    driver: Driver
    hooks: tuple[Hook, ...]
    environment: WarmHook
    entry: TaskEntry

    def __init__(
        self,
        driver: Driver,
        first: Sequence[Hook],
        environment: WarmHook,
        others: Sequence[Hook],
        entry: TaskEntry,
    ) -> None:
        self.driver = driver
        self.entry = entry
        self.environment = environment
        self.hooks = (*first, environment, *others)

    async def start(self, known: Callable[[], Set[str]]) -> None:
        """Removes what earlier agents left. ``known`` returns the ids of the containers that have run folders."""

    async def clean_up(self) -> None:
        """Removes what is no longer used, every few minutes until cancelled."""

    async def close(self) -> None:
        """Ends connections, and no container."""


class ProcessRuntime(Runtime):
    """Processes of the machine, in Python environments that the agent keeps."""

    def __init__(
        self,
        driver: Driver,
        first: Sequence[Hook],
        environment: WarmHook,
        others: Sequence[Hook],
        environments: Environments,
        forks: ShimForks,
    ) -> None:
        super().__init__(driver, first, environment, others, ProcessEntry())
        self._environments = environments
        self._forks = forks
        self._known: asyncio.Future[Callable[[], Set[str]]] = asyncio.get_running_loop().create_future()

    async def start(self, known: Callable[[], Set[str]]) -> None:
        self._known.set_result(known)
        await asyncio.to_thread(self._forks.open)

    async def clean_up(self) -> None:
        await self._environments.run(await self._known)

    async def close(self) -> None:
        self._forks.close()


class ContainerRuntime(Runtime):
    """Containers of an engine."""

    def __init__(
        self,
        driver: DockerDriver,
        first: Sequence[Hook],
        environment: WarmHook,
        others: Sequence[Hook],
        image_cleanup: ImageCleanup,
        host_mounts: HostMounts,
        entry: TaskEntry,
    ) -> None:
        super().__init__(driver, first, environment, others, entry)
        self._driver = driver
        self._host_mounts = host_mounts
        self._image_cleanup = image_cleanup

    async def start(self, known: Callable[[], Set[str]]) -> None:
        await self._driver.remove_others(known)
        await asyncio.to_thread(self._host_mounts.remove_leftovers)

    async def clean_up(self) -> None:
        await self._image_cleanup.run()

    async def close(self) -> None:
        await self._driver.close()


def make_runtime(
    settings: Settings,
    agent_id: str,
    slots: Sequence[SlotFacts],
    token: str,
    umask: int = 0o022,
    monitor: SlotMonitor | None = None,
    cluster_folders: Callable[[], ClusterFolders] = ClusterFolders,
) -> Runtime:
    """Returns the runtime that the settings select. Raises DeterminedError.

    ``umask`` is for tasks; ``cluster_folders`` returns what the master said last.
    """
    limits = OutputLimits(settings.output_segment_bytes, settings.unsent_output_bytes, settings.output_line_bytes)
    devices = DevicesHook(slots, monitor.occupation, monitor.device_files) if monitor else DevicesHook(slots)
    contexts = Contexts(settings, token)
    files, proxy_ports = FilesHook(settings, contexts), ProxyPortsHook()
    identity = IdentityHook(settings)
    if settings.container_runtime == "process":
        has_pids = settings.isolation == "auto" and os.geteuid() == 0
        probe, environments = PythonProbe(settings.base_environment), Environments(settings)
        requirements = RequirementsHook(settings, agent_id, contexts, environments, probe)
        environment = EnvironmentHook(settings, agent_id, len(slots), probe)
        forks = ShimForks(settings.data)
        driver = ProcessDriver(ProcessOptions(has_pids, limits, umask), forks)
        others = (files, devices, MountsHook(can_mount), proxy_ports)
        return ProcessRuntime(driver, (identity, requirements), environment, others, environments, forks)
    _check_package()
    engine = Engine(settings.engine_address)
    pulled = PulledImages(settings.data)
    defaults = {**DEFAULT_IMAGES, **settings.default_images}
    images = Images(engine, settings.data, pulled=pulled, defaults=defaults, aliases=settings.image_aliases)
    image_cleanup = ImageCleanup(engine, pulled, settings, defaults.values())
    # The data folder tells two agents apart that share an engine.
    labels = {"detent.agent": agent_id, "detent.data": str(settings.data)}
    user = "" if os.geteuid() == 0 else f"{os.geteuid()}:{os.getegid()}"
    access = HostAccess(settings, cluster_folders)
    host_mounts = HostMounts(access, settings.data)
    containers = DockerDriver(
        engine,
        keep_shim(settings.data),
        labels=labels,
        limits=limits,
        umask=umask,
        user=user,
        host_mounts=host_mounts,
    )
    hooks = (
        files,
        devices,
        ContainerMountsHook(access),
        ContainerNetworkHook(is_master_local=settings.is_master_local, proxy_ports=proxy_ports),
    )
    environment_hook = ContainerEnvironmentHook(settings, agent_id, slots, images)
    first = (identity, HostAccessHook(access))
    return ContainerRuntime(
        containers, first, environment_hook, hooks, image_cleanup, host_mounts, ContainerEntry(engine)
    )


def _check_package() -> None:
    try:
        import docker  # noqa: F401
    except ImportError as problem:
        raise DeterminedError(
            "container_runtime needs the package docker; add it with: pip install 'detent-cluster[docker]'"
        ) from problem
