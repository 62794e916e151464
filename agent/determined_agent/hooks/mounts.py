"""Applies bind_mounts without a container engine: with a mount, or without one if both paths are the same folder."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import PRIVATE_RUN, PRIVATE_SHARED_FS, ContainerPlan
from determined_agent.hooks.identity import private_mounts
from determined_agent.host_access.access import PROCESSES, is_below
from determined_agent.task_process.namespaces import Mount


class MountsHook:
    """Adds the mounts of a task. ``can_mount`` returns whether tasks may have mounts; called only if one is needed."""

    def __init__(self, can_mount: Callable[[], bool]) -> None:
        self._can_mount = can_mount

    async def do(self, plan: ContainerPlan) -> None:
        identity = plan.identity
        if identity is not None:  # if a mount is refused, the start of the task fails in the shim, with the reason
            plan.mounts.extend(await asyncio.to_thread(private_mounts, plan, identity))
        if plan.has_private_paths:
            if identity is None and not await self._may_mount():
                raise NotStarted(
                    "a task with the determined library of its own environment needs a private /run/determined, and "
                    "this machine does not allow user namespaces for this user. Set environment.harness: ours, run the "
                    "agent as root, or allow unprivileged user namespaces"
                )
            plan.mounts.append(Mount(str(plan.folder.run), str(PRIVATE_RUN)))
            source = await asyncio.to_thread(storage_folder, plan)
            if source:
                is_users = identity is not None and not plan.spec.is_cluster_storage
                plan.mounts.append(Mount(source, PRIVATE_SHARED_FS, as_user=is_users))
        for wanted in plan.spec.bind_mounts:
            may_mount = identity is not None or await self._may_mount()
            mount = await asyncio.to_thread(_mount, plan, wanted, can_mount=may_mount)
            if mount is not None:
                plan.mounts.append(mount)
        # No user namespace is made for this alone: it breaks programs that check owners, such as ssh. Root needs none.
        if identity is None and (plan.mounts or os.geteuid() == 0) and await self._may_mount():
            plan.mounts.extend(Mount(str(path), str(path), True) for path in plan.read_only if path.is_dir())

    async def undo(self, plan: ContainerPlan) -> None:
        """Does nothing: mounts end with the task's namespace."""

    async def _may_mount(self) -> bool:
        return await asyncio.to_thread(self._can_mount)


def _mount(plan: ContainerPlan, wanted: Mapping[str, Any], *, can_mount: bool) -> Mount | None:
    source = str(wanted.get("host_path", ""))
    target = str(wanted.get("container_path", ""))
    if not os.path.isabs(source):
        raise NotStarted(f"bind_mounts: host_path {source or '(empty)'} is not an absolute path")
    check_source(plan, source)
    if not os.path.isabs(target):
        target = str(plan.workdir / target)
    read_only = bool(wanted.get("read_only", False))
    if plan.identity is not None:
        if is_below(os.path.realpath(source), PROCESSES):
            raise NotStarted(
                f"bind_mounts: host_path {source} shows the machine's processes, which other users started"
            )
        return Mount(source, os.path.normpath(target), read_only, as_user=True)
    if not read_only and os.path.realpath(source) == os.path.realpath(target):
        return None
    if can_mount:
        return Mount(source, os.path.normpath(target), read_only)
    if read_only and os.path.realpath(source) == os.path.realpath(target):
        plan.log_line(f"bind_mounts: {target} is not read-only: this agent is not allowed to mount", "WARNING")
        return None
    raise NotStarted(
        f"bind_mounts: {source} cannot be mounted at {target}: this machine does not allow user namespaces for this "
        f"user. Set container_path to {source}, make {target} a link to {source}, or run the agent as root"
    )


def check_source(plan: ContainerPlan, source: str) -> None:
    """Raises NotStarted unless the host path exists, and the task's user reaches it."""
    if not os.path.exists(source):
        raise NotStarted(f"bind_mounts: host_path {source} does not exist on this machine")
    if plan.identity is not None:
        try:
            with plan.identity.file_rights():
                os.stat(source)
        except PermissionError as error:
            raise NotStarted(f"bind_mounts: uid {plan.identity.uid} may not reach host_path {source}") from error


def storage_folder(plan: ContainerPlan) -> str:
    """Returns the host path of the checkpoint storage, which is created if it is missing; empty if there is none.

    The folder that the master itself chose is open to all owners, like /tmp: each sees only its own checkpoints. Any
    other folder is created and reached with the rights of the task's user.
    """
    path, identity = str(plan.spec.checkpoint_storage.get("host_path") or ""), plan.identity
    if not path:
        return ""
    if identity is None or plan.spec.is_cluster_storage:
        _make_folder(path)
        if identity is not None and os.stat(path).st_uid == os.geteuid():
            os.chmod(path, 0o1777)
        return path
    try:
        with identity.file_rights():
            Path(path).mkdir(parents=True, exist_ok=True)
            os.stat(path)
    except OSError as error:
        raise NotStarted(
            f"checkpoint_storage.host_path: uid {identity.uid} cannot use {path}: {error.strerror}"
        ) from error
    return path


def _make_folder(path: str) -> None:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotStarted(f"checkpoint_storage.host_path: cannot create {path}: {error.strerror}") from error
