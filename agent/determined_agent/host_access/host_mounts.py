"""Holds the folders that configurations name while a container engine mounts them.

An engine opens a path as root. A user who can write to a folder above it can exchange it for a link after every check.
So each path is opened once more right before the mount, with the rights of the task's user and through no link, and the
opened folder itself is mounted at a place that only root reaches. The engine mounts that place, which is removed when
the container runs. The place is on a file system of its own: an engine that does not see the mounts of this agent does
not find it, and says so.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

from determined_agent.drivers.driver import ContainerLaunch, SystemFailure
from determined_agent.host_access.access import HostAccess, is_fixed
from determined_agent.host_access.mount_probe import can_mount_as_root
from determined_agent.task_process.namespaces import (
    MNT_DETACH,
    MS_BIND,
    MS_PRIVATE,
    MS_REC,
    MS_SLAVE,
    Mount,
    call_mount,
)
from determined_agent.task_process.processes import libc

_SHARED = ("shared", "rshared")


class HostMounts:
    """The held folders of an agent's containers."""

    def __init__(self, access: HostAccess, data: Path) -> None:
        """``access``: decides about each folder. ``data``: the agent's data folder."""
        self._access = access
        self._folder = data / "mounts"

    def remove_leftovers(self) -> None:
        """Removes what an agent left that ended while it started a container. Blocking."""
        with contextlib.suppress(FileNotFoundError):
            for place in list(self._folder.iterdir()):
                _release(place)

    @contextlib.asynccontextmanager
    async def held(self, launch: ContainerLaunch) -> AsyncIterator[tuple[Mount, ...]]:
        """Yields the mounts of a container as its engine has to make them. Raises NotStarted for one that it may no
        longer have."""
        place = self._folder / launch.folder.path.name
        try:
            yield await asyncio.to_thread(self._look_again, launch, place)
        finally:
            await asyncio.to_thread(_release, place)

    def explain(self, text: str) -> str:
        """Returns what the engine said, with advice if it does not see a held folder."""
        if str(self._folder) not in text:
            return text
        return (
            f"{text}. The engine does not see the mounts of this agent: run both in the same mount namespace, or name "
            "the mounted folder itself in the agent's setting allowed_host_paths"
        )

    def _look_again(self, launch: ContainerLaunch, place: Path) -> tuple[Mount, ...]:
        return tuple(
            self._checked(mount, launch, place / str(number)) if mount.named_by else mount
            for number, mount in enumerate(launch.mounts)
        )

    def _checked(self, mount: Mount, launch: ContainerLaunch, place: Path) -> Mount:
        identity = launch.identity if mount.as_user else None
        own_storage = "" if mount.as_user else mount.source
        with self._access.opened(identity, mount.named_by, mount.source) as descriptor:
            rules = self._access.refuse(mount.source, mount.named_by, launch.identity, own_storage)
            if not can_mount_as_root() or (rules.is_named(mount.source) and is_fixed(mount.source)):
                return mount  # no task can exchange it
            try:
                _hold(descriptor, place, is_shared=mount.propagation in _SHARED)
            except OSError as error:
                raise SystemFailure(f"{mount.named_by}: cannot hold {mount.source} for its mount: {error}") from error
        return mount._replace(source=str(place))


def _hold(descriptor: int, place: Path, *, is_shared: bool) -> None:
    """Mounts an opened file or folder at ``place``."""
    if not place.parent.exists():
        place.parent.mkdir(mode=0o700, parents=True)
        call_mount("tmpfs", str(place.parent), "tmpfs", 0, "mode=0700,size=64k")
        call_mount(None, str(place.parent), None, MS_PRIVATE)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        place.mkdir()
    else:
        place.touch()
    call_mount(f"/proc/self/fd/{descriptor}", str(place), None, MS_BIND | MS_REC)
    if not is_shared:
        call_mount(None, str(place), None, MS_REC | MS_SLAVE)


def _release(place: Path) -> None:
    """Removes the mounts of a container's folder; their sources keep those that are below them."""
    if not place.exists():
        return
    with contextlib.suppress(OSError):
        # Otherwise the end of the copy of a shared mount also ends the mount itself.
        call_mount(None, str(place), None, MS_REC | MS_PRIVATE)
        libc.umount2(os.fsencode(place), MNT_DETACH)
    with contextlib.suppress(OSError):
        place.rmdir()
