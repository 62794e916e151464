"""Private mounts and pids for a task, as root or not. Standard library only; runs in the shim's child.

If all targets exist, the mounts are placed over them. Otherwise a new root file system is assembled on a tmpfs: each
entry of the machine's root is bound to its place, and the task's mounts are added. A plain tmpfs over /run would hide
the other entries of /run. Works as root (mount namespace) and as an ordinary user (user and mount namespace).

A task of another user than the agent always gets a new root, and nothing is created on the machine for it with rights
that this user does not have.
"""

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from determined_agent.task_process.identity import Identity
from determined_agent.task_process.processes import libc

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC = 1, 32, 4096, 16384
MS_PRIVATE, MS_SLAVE = 1 << 18, 1 << 19
MS_NOSUID, MS_NODEV = 2, 4
MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


class Mount(NamedTuple):
    """A mount: the task sees ``source`` of the machine at ``target``."""

    source: str
    target: str
    read_only: bool = False
    propagation: str = "rprivate"
    """Propagation of mounts made later below ``source``; only a container engine applies another one."""
    as_user: bool = False
    """Opens ``source`` with the rights of the task's user, who named it, instead of the agent's."""
    named_by: str = ""
    """Key of the configuration that names ``source``; the driver of containers looks at such a source again."""


class Namespace(NamedTuple):
    """The private mounts and pids of a task. Without either, the task shares everything."""

    pids: bool = False
    mounts: tuple[Mount, ...] = ()
    root: str = ""
    """Empty folder of the task, in which the new root is assembled."""
    reachable: tuple[str, ...] = ()
    """Folders that a task of another user sees read-only, even if their parents are closed to this user."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Namespace":
        mounts = tuple(Mount(**mount) for mount in value.get("mounts", ()))
        return cls(bool(value.get("pids")), mounts, str(value.get("root", "")), tuple(value.get("reachable", ())))

    def enter(self, *, proc: bool, identity: Identity | None = None) -> None:
        """Moves this process into the namespace; ``proc`` if its pid namespace is new and needs a new /proc.

        ``identity``: the task's user if it is not the agent's. Raises OSError.
        """
        if identity is not None:
            self._enter_for(identity, proc=proc)
            return
        if not self.mounts and not proc:
            return
        _new_mounts()
        if self.mounts and all(os.path.exists(mount.target) for mount in self.mounts):
            _bind_in_place(self.mounts)
        elif self.mounts:
            _Root(self.root).build(self.mounts)
        if proc:
            call_mount("proc", "/proc", "proc", 0)

    def _enter_for(self, identity: Identity, *, proc: bool) -> None:
        """Enters with a private /dev/shm, and a /proc that shows no other user's processes."""
        os.umask(0o022)  # the user must pass the folders on the way to mounts
        try:
            _check(libc.unshare(_CLONE_NEWNS), "unshare")
        except OSError as error:
            raise PermissionError(
                error.errno,
                f"a task of uid {identity.uid} needs private mounts, and this agent may not make any although it runs "
                f"as root ({error.strerror}); it needs the capability CAP_SYS_ADMIN",
            ) from error
        call_mount(None, "/", None, MS_REC | MS_SLAVE)
        _Root(self.root, identity).build(self.mounts, self.reachable)
        call_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV, None if proc else "hidepid=2")


def new_pids() -> bool:
    """Puts future children into a new pid namespace; returns False if that is not allowed."""
    return bool(libc.unshare(_CLONE_NEWPID) == 0)


def _new_mounts() -> None:
    if os.geteuid() == 0 and libc.unshare(_CLONE_NEWNS) == 0:
        # Later mounts of the machine, such as a network drive, reach the task; its own do not reach the machine.
        call_mount(None, "/", None, MS_REC | MS_SLAVE)
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
        call_mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)
        if mount.read_only:
            _protect(target)
        os.close(source)


class _Root:
    """A new root file system on a tmpfs in the folder ``path``, which becomes this process's root."""

    def __init__(self, path: str, identity: Identity | None = None) -> None:
        self._path = path
        self._identity = identity
        self._mirrors = [path]

    def build(self, mounts: tuple[Mount, ...], reachable: tuple[str, ...] = ()) -> None:
        root = self._path
        sources = [self._open(mount) for mount in mounts]
        closed = self._closed(reachable)
        call_mount("tmpfs", root, "tmpfs", 0, "mode=0755,size=16m")
        _mirror("/", root)
        for gate, folders in closed.items():
            self._open_way(gate, folders)
        if self._identity is not None and os.path.isdir("/dev/shm"):
            call_mount("tmpfs", f"{root}/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
        for mount, source in zip(mounts, sources, strict=True):
            path = os.path.realpath(mount.target)
            self._make_place(path, is_folder=stat.S_ISDIR(os.fstat(source).st_mode))
            call_mount(f"/proc/self/fd/{source}", root + path, None, MS_BIND | MS_REC)
            if mount.read_only:
                _protect(root + path)
            os.close(source)
        for mirror in filter(os.path.exists, self._mirrors):  # a later mount may hide one
            # Read-only: files that a task wrote beside the entries of a mirror would be lost.
            _protect(mirror)
        _change_root(root)

    def _open(self, mount: Mount) -> int:
        flags = os.O_PATH | os.O_CLOEXEC
        if self._identity is None or not mount.as_user:
            return os.open(mount.source, flags)
        with self._identity.acting():
            return os.open(mount.source, flags)

    def _closed(self, folders: tuple[str, ...]) -> dict[str, dict[str, int]]:
        """Returns closed parent → descriptors of the folders below it that the user cannot reach."""
        handles: dict[str, dict[str, int]] = {}
        for folder in sorted(set(folders)):
            gate = _closed_parent(folder, self._identity)
            if gate is not None and os.path.isdir(folder):
                handles.setdefault(gate, {})[folder] = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        return handles

    def _open_way(self, gate: str, folders: Mapping[str, int]) -> None:
        """Replaces the closed folder ``gate`` by one that leads to ``folders`` only."""
        root = self._path
        call_mount("tmpfs", root + gate, "tmpfs", 0, "mode=0755,size=16m")
        for folder, source in folders.items():
            if not os.path.exists(root + folder):  # else it is below another one
                os.makedirs(root + folder)
                call_mount(f"/proc/self/fd/{source}", root + folder, None, MS_BIND | MS_REC)
                _protect(root + folder)
            os.close(source)
        self._mirrors.append(root + gate)

    def _make_place(self, target: str, *, is_folder: bool) -> None:
        """Creates ``target`` below the new root if it does not exist.

        If the task's user may create it in its folder, it is created permanently, as container engines do. Otherwise,
        and in the machine's / and /run, a mirror of the folder with the additional name replaces the folder.
        """
        root = self._path
        if os.path.lexists(root + target):
            return
        parent, name = os.path.split(target)
        parent = parent if parent != "/" else ""
        self._make_place(parent or "/", is_folder=True)
        is_bound = os.stat(root + (parent or "/")).st_dev != os.stat(root).st_dev and root + parent not in self._mirrors
        folder = os.open(root + (parent or "/"), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if is_bound and parent != "/run" and self._may_create(folder):
                with self._rights():
                    _create(folder, name, is_folder=is_folder)
                return
            if is_bound:
                call_mount("tmpfs", root + parent, "tmpfs", 0, "mode=0755,size=16m")
                _mirror(f"/proc/self/fd/{folder}/.", root + parent)
                self._mirrors.append(root + parent)
        finally:
            os.close(folder)
        with _opened(root + (parent or "/")) as new:
            _create(new, name, is_folder=is_folder)

    def _may_create(self, folder: int) -> bool:
        with self._rights():
            return os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True)

    def _rights(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._identity is None else self._identity.acting()


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _create(folder: int, name: str, *, is_folder: bool) -> None:
    """Creates a folder or a file. Another task that starts may just have made it."""
    try:
        if is_folder:
            os.mkdir(name, dir_fd=folder)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=folder))
    except FileExistsError:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)):
            raise


def _closed_parent(path: str, identity: Identity | None) -> str | None:
    """Returns the uppermost folder on the way to ``path`` that the user may not pass."""
    if identity is None:
        return None
    parents = []
    while (path := os.path.dirname(path)) != "/":
        parents.append(path)
    with identity.acting():
        return next((each for each in reversed(parents) if not os.access(each, os.X_OK, effective_ids=True)), None)


def _change_root(root: str) -> None:
    os.chdir(root)
    machine = os.uname().machine
    if machine not in _PIVOT_ROOT:
        raise OSError(f"private mounts are not supported on {machine}")
    _check(libc.syscall(_PIVOT_ROOT[machine], b".", b"."), "pivot_root")
    _check(libc.umount2(b".", MNT_DETACH), "umount2")
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
            call_mount(entry.path, place, None, MS_BIND | MS_REC)
        except OSError:
            if entry.is_dir():
                os.rmdir(place)
            else:
                os.unlink(place)


def _protect(path: str) -> None:
    call_mount(None, path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | _kept_flags(path))


def _kept_flags(path: str) -> int:
    """Returns the flags that an unprivileged remount may not remove."""
    flags = os.statvfs(path).f_flag
    return flags & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME | os.ST_RELATIME)


def call_mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Makes or changes a mount, as ``mount(2)``. Raises OSError."""
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    result = libc.mount(arguments[0], arguments[1], arguments[2], ctypes.c_ulong(flags), arguments[3])
    _check(result, f"mount {source or ''} at {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
