"""Applies bind_mounts without a container engine: with a mount, or with the path itself if it is right already."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import PRIVATE_RUN, PRIVATE_SHARED_FS, Draft
from determined_agent.namespaces import Mount


class MountsHook:
    """Adds the mounts of a task. ``can_mount`` returns whether tasks may have mounts; called only if one is needed."""

    def __init__(self, can_mount: Callable[[], bool]) -> None:
        self._can_mount = can_mount

    async def do(self, draft: Draft) -> None:
        if draft.has_private_paths:
            if not await self._may_mount():
                raise NotStarted(
                    "a task with the determined library of its own environment needs a private /run/determined, and "
                    "this machine does not allow user namespaces for this user. Set environment.harness: ours, run the "
                    "agent as root, or allow unprivileged user namespaces"
                )
            draft.mounts.append(Mount(str(draft.folder.run), str(PRIVATE_RUN)))
            host_path = draft.spec.checkpoint_storage.get("host_path")
            if host_path:
                draft.mounts.append(Mount(_made(str(host_path), "checkpoint_storage.host_path"), PRIVATE_SHARED_FS))
        for wanted in draft.spec.bind_mounts:
            mount = _mount(draft, wanted, can_mount=await self._may_mount())
            if mount is not None:
                draft.mounts.append(mount)
        # No user namespace only for this: it breaks programs that check owners, such as ssh. Root needs none.
        if (draft.mounts or os.geteuid() == 0) and await self._may_mount():
            draft.mounts.extend(Mount(str(path), str(path), True) for path in draft.read_only if path.is_dir())

    async def undo(self, draft: Draft) -> None:
        """Does nothing: mounts end with the task's namespace."""

    async def _may_mount(self) -> bool:
        return await asyncio.to_thread(self._can_mount)


def _mount(draft: Draft, wanted: Mapping[str, Any], *, can_mount: bool) -> Mount | None:
    source = str(wanted.get("host_path", ""))
    target = str(wanted.get("container_path", ""))
    if not os.path.isabs(source):
        raise NotStarted(f"bind_mounts: host_path {source or '(empty)'} is not an absolute path")
    if not os.path.exists(source):
        raise NotStarted(f"bind_mounts: host_path {source} does not exist on this machine")
    if not os.path.isabs(target):
        target = str(draft.workdir / target)
    read_only = bool(wanted.get("read_only", False))
    if not read_only and os.path.realpath(source) == os.path.realpath(target):
        return None
    if can_mount:
        return Mount(source, os.path.normpath(target), read_only)
    if read_only and os.path.realpath(source) == os.path.realpath(target):
        draft.say(f"bind_mounts: {target} is not read-only: this agent is not allowed to mount", "WARNING")
        return None
    raise NotStarted(
        f"bind_mounts: {source} cannot be mounted at {target}: this machine does not allow user namespaces for this "
        f"user. Set container_path to {source}, make {target} a link to {source}, or run the agent as root"
    )


def _made(path: str, what: str) -> str:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotStarted(f"{what}: cannot create {path}: {error.strerror}") from error
    return path
