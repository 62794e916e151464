"""Private mounts and pids for a task, as root or not. Standard library only; runs in the shim's child.

If all targets exist, the mounts are placed over them. Otherwise a new root file system is assembled on a tmpfs: each
entry of the machine's root is bound to its place, and the task's mounts are added. A plain tmpfs over /run would hide
the other entries of /run. Works as root (mount namespace) and as an ordinary user (user and mount namespace).
"""

import ctypes
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from determined_agent.processes import libc

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_SLAVE = 1, 32, 4096, 16384, 1 << 19
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


class Mount(NamedTuple):
    """A mount: the task sees ``source`` of the machine at ``target``."""

    source: str
    target: str
    read_only: bool = False


class Namespace(NamedTuple):
    """The private mounts and pids of a task. Without either, the task shares everything."""

    pids: bool = False
    mounts: tuple[Mount, ...] = ()
    root: str = ""
    """Empty folder of the task, in which the new root is assembled."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Namespace":
        mounts = tuple(Mount(**mount) for mount in value.get("mounts", ()))
        return cls(bool(value.get("pids")), mounts, str(value.get("root", "")))

    def enter(self, *, proc: bool) -> None:
        """Moves this process into the namespace; ``proc`` if its pid namespace is new and needs a new /proc.

        Raises OSError.
        """
        if not self.mounts and not proc:
            return
        _new_mounts()
        if self.mounts and all(os.path.exists(mount.target) for mount in self.mounts):
            _bind_in_place(self.mounts)
        elif self.mounts:
            _build(self.root, self.mounts)
        if proc:
            _mount("proc", "/proc", "proc", 0)


def new_pids() -> bool:
    """Puts future children into a new pid namespace; returns False if that is not allowed."""
    return bool(libc.unshare(_CLONE_NEWPID) == 0)


def _new_mounts() -> None:
    if os.geteuid() == 0 and libc.unshare(_CLONE_NEWNS) == 0:
        # Later mounts of the machine, such as a network drive, reach the task; its own do not reach the machine.
        _mount(None, "/", None, _MS_REC | _MS_SLAVE)
        return
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        number = ctypes.get_errno()
        raise PermissionError(
            number,
            "this task needs private mounts, and this machine does not allow user namespaces for this user "
            f"({os.strerror(number)}); run the agent as root, or allow unprivileged user namespaces",
        )
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _bind_in_place(mounts: tuple[Mount, ...]) -> None:
    sources = [os.open(mount.source, os.O_PATH | os.O_CLOEXEC) for mount in mounts]
    for mount, source in zip(mounts, sources, strict=True):
        target = os.path.realpath(mount.target)
        _mount(f"/proc/self/fd/{source}", target, None, _MS_BIND | _MS_REC)
        if mount.read_only:
            _protect(target)
        os.close(source)


def _build(root: str, mounts: tuple[Mount, ...]) -> None:
    sources = [os.open(mount.source, os.O_PATH | os.O_CLOEXEC) for mount in mounts]
    _mount("tmpfs", root, "tmpfs", 0, "mode=0755,size=16m")
    _mirror("/", root)
    mirrors = [root]
    for mount, source in zip(mounts, sources, strict=True):
        path = os.path.realpath(mount.target)
        _make_place(root, path, mirrors, is_folder=os.path.isdir(mount.source))
        _mount(f"/proc/self/fd/{source}", root + path, None, _MS_BIND | _MS_REC)
        if mount.read_only:
            _protect(root + path)
        os.close(source)
    for mirror in mirrors:
        # Read-only: files that a task wrote beside the entries of a mirror would be lost.
        _protect(mirror)
    os.chdir(root)
    machine = os.uname().machine
    if machine not in _PIVOT_ROOT:
        raise OSError(f"private mounts are not supported on {machine}")
    _check(libc.syscall(_PIVOT_ROOT[machine], b".", b"."), "pivot_root")
    _check(libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")


def _mirror(folder: str, copy: str) -> None:
    """Binds each entry of ``folder`` into ``copy``, an empty folder on the tmpfs."""
    for entry in os.scandir(folder):
        place = os.path.join(copy, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), place)
            continue
        if entry.is_dir():
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
        try:
            _mount(entry.path, place, None, _MS_BIND | _MS_REC)
        except OSError:
            if entry.is_dir():
                os.rmdir(place)
            else:
                os.unlink(place)


def _make_place(root: str, target: str, mirrors: list[str], *, is_folder: bool) -> None:
    """Creates ``target`` below ``root`` if it does not exist.

    If this user may create it in its folder, it is created permanently, as container engines do. Otherwise, and in the
    machine's / and /run, a mirror of the folder with the additional name replaces the folder.
    """
    if os.path.lexists(root + target):
        return
    parent, name = os.path.split(target)
    parent = parent if parent != "/" else ""
    _make_place(root, parent or "/", mirrors, is_folder=True)
    is_bound = os.stat(root + (parent or "/")).st_dev != os.stat(root).st_dev and root + parent not in mirrors
    if is_bound and (parent == "/run" or not os.access(root + parent, os.W_OK)):
        held = os.open(root + parent, os.O_PATH | os.O_CLOEXEC)
        _mount("tmpfs", root + parent, "tmpfs", 0, "mode=0755,size=16m")
        _mirror(f"/proc/self/fd/{held}/.", root + parent)
        mirrors.append(root + parent)
        os.close(held)
    place = f"{root}{parent}/{name}"
    if is_folder:
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY))


def _protect(path: str) -> None:
    _mount(None, path, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _kept_flags(path))


def _kept_flags(path: str) -> int:
    """Returns the flags that an unprivileged remount may not remove."""
    flags = os.statvfs(path).f_flag
    return flags & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME | os.ST_RELATIME)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    result = libc.mount(arguments[0], arguments[1], arguments[2], ctypes.c_ulong(flags), arguments[3])
    _check(result, f"mount {source or ''} at {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
