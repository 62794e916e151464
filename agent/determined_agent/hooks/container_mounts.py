"""Mounts and devices of a container: its run folder, the checkpoint storage, bind_mounts and devices."""

import asyncio
import os
from dataclasses import replace

from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import PRIVATE_RUN, PRIVATE_SHARED_FS, ContainerPlan
from determined_agent.host_access.access import STORAGE_KEY, HostAccess
from determined_agent.task_process.namespaces import Mount

PROPAGATIONS = ("private", "rprivate", "shared", "rshared", "slave", "rslave")


class HostAccessHook:
    """Refuses what the container does not get of the machine, before its image is pulled."""

    def __init__(self, access: HostAccess) -> None:
        self._access = access

    async def do(self, plan: ContainerPlan) -> None:
        await asyncio.to_thread(self._access.check, plan)

    async def undo(self, plan: ContainerPlan) -> None:
        """Does nothing: nothing was made."""


class ContainerMountsHook:
    """Adds the mounts and devices of a container."""

    def __init__(self, access: HostAccess) -> None:
        self._access = access

    async def do(self, plan: ContainerPlan) -> None:
        plan.mounts.append(Mount(str(plan.folder.run), str(PRIVATE_RUN)))
        await asyncio.to_thread(self._add_storage, plan)
        for index in range(len(plan.spec.bind_mounts)):
            plan.mounts.append(await asyncio.to_thread(self._mount, plan, index))
        if plan.container is not None:
            devices = [self._device(plan, index) for index in range(len(plan.spec.devices))]
            plan.container = replace(plan.container, devices=(*plan.container.devices, *devices))

    async def undo(self, plan: ContainerPlan) -> None:
        """Does nothing: mounts end with the container."""

    def _add_storage(self, plan: ContainerPlan) -> None:
        """Adds the mount of the checkpoint storage, whose folder is created if it is missing.

        The folder that the master itself chose is open to all owners, like /tmp: each sees only its own checkpoints.
        Any other folder is created and reached with the rights of the task's user.
        """
        source, spec = self._access.storage(plan), plan.spec
        if not source:
            return
        propagation = _propagation(STORAGE_KEY, spec.checkpoint_storage.get("propagation"))
        identity = None if spec.is_cluster_storage else plan.identity
        with self._access.opened(identity, STORAGE_KEY, source, makes=True) as descriptor:
            is_agents = os.fstat(descriptor).st_uid == os.geteuid()
            if plan.identity is not None and spec.is_cluster_storage and is_agents:
                os.chmod(f"/proc/self/fd/{descriptor}", 0o1777)
        plan.mounts.append(
            Mount(
                source,
                PRIVATE_SHARED_FS,
                propagation=propagation,
                as_user=not spec.is_cluster_storage,
                named_by=STORAGE_KEY,
            )
        )

    def _mount(self, plan: ContainerPlan, index: int) -> Mount:
        wanted = plan.spec.bind_mounts[index]
        source, target = self._access.bind_mount(plan, index), str(wanted.get("container_path", ""))
        propagation = _propagation("bind_mounts", wanted.get("propagation"))
        if not os.path.isabs(target):
            target = str(plan.workdir / target)
        return Mount(
            source,
            os.path.normpath(target),
            bool(wanted.get("read_only", False)),
            propagation,
            as_user=True,
            named_by=f"bind_mounts[{index}].host_path",
        )

    def _device(self, plan: ContainerPlan, index: int) -> str:
        wanted = plan.spec.devices[index]
        source = self._access.device(plan, index)
        return f"{source}:{wanted.get('container_path') or source}:{wanted.get('mode') or 'mrw'}"


def _propagation(key: str, given: object) -> str:
    propagation = str(given or "rprivate")
    if propagation not in PROPAGATIONS:
        raise NotStarted(f"{key}: propagation {propagation} is none of {', '.join(PROPAGATIONS)}")
    return propagation
