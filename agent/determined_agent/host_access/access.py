"""Decides which folders, devices and capabilities of this machine a container gets. Nothing else decides it.

:class:`HostRules` is pure. :class:`HostAccess` reads the settings and the file system for it.

A container gets a folder that the settings name, the cluster's own storage, and, if it runs as its owner's user of this
machine, whatever this user reaches. It gets listed devices and capabilities only. See
docs/decisions/0026-host-paths.md.
"""

import contextlib
import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import NamedTuple

from determined.link.master_folder import is_master_folder
from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.host_access.mount_probe import can_mount_as_root
from determined_agent.settings import ENGINE_URLS, Settings
from determined_agent.task_process.identity import Identity

STORAGE_KEY = "checkpoint_storage.host_path"
PROCESSES = "/proc"
"""Where all users of a machine read each other's command lines; a task sees only its own processes."""
CAPABILITIES_KEY = "environment.add_capabilities"
_UNIX = "unix://"
_CONTAINERD = "/run/containerd/containerd.sock"
_PLAIN = re.compile(r"[\w./*?@+-]+")


class Refusal(NamedTuple):
    """Why a container does not get a path."""

    reason: str
    missing: str
    """The path that the settings would have to name."""


class ClusterFolders(NamedTuple):
    """Folders that the master tells its agents: its own checkpoint storage, and its data folder."""

    storage: tuple[str, ...] = ()
    data: str = ""


@dataclass(frozen=True)
class HostRules:
    """The folders that containers get and never get. Every path is absolute and has no links."""

    folders: tuple[str, ...] = ()
    """Folders of the settings."""
    storage: tuple[str, ...] = ()
    """The cluster's own storage."""
    protected: Mapping[str, str] = field(default_factory=dict)
    """Folder → what it is."""

    def refusal(self, path: str, *, has_own_user: bool) -> Refusal | None:
        """Returns why a container does not get ``path``; None if it does.

        ``has_own_user``: the container runs as its owner's user of this machine, with the rights of this user.
        """
        for place, what in self.protected.items():
            within = [*self.folders, *(each for each in self.storage if each != place)]
            if is_below(path, place) and not any(is_below(path, each) and is_below(each, place) for each in within):
                return Refusal(f"{path} {'is' if path == place else 'is in'} {what}", path)
            if path != place and is_below(place, path) and place not in self.folders:
                return Refusal(f"{path} contains {what}, {place}", place)
        if has_own_user or any(is_below(path, each) for each in (*self.folders, *self.storage)):
            return None
        return Refusal(f"the administrator of this agent does not allow {path}", path)

    def is_named(self, path: str) -> bool:
        """Returns True if an administrator named this very path."""
        return path in self.folders or path in self.storage

    def listed_above(self, path: str) -> str | None:
        """Returns the innermost named folder that holds ``path``, or None."""
        return max((each for each in (*self.folders, *self.storage) if is_below(path, each)), key=len, default=None)


class HostAccess:
    """What containers of this agent get of the machine."""

    def __init__(self, settings: Settings, told: Callable[[], ClusterFolders]) -> None:
        """``told``: returns what the master said last."""
        self._settings = settings
        self._told = told
        # Once: whoever may exchange a named folder for a link must not choose what is named.
        self._folders = tuple(os.path.realpath(each) for each in settings.host_paths)
        self._devices = {*settings.allowed_devices, *map(os.path.realpath, settings.allowed_devices)}
        self._storage: dict[str, str] = {}

    def check(self, plan: ContainerPlan) -> None:
        """Raises NotStarted for what the container does not get, before anything is made for it. Blocking."""
        spec = plan.spec
        self._check_capabilities(spec.add_capabilities)
        for index in range(len(spec.devices)):
            self.device(plan, index)
        self.storage(plan)
        for index in range(len(spec.bind_mounts)):
            self.bind_mount(plan, index)

    def storage(self, plan: ContainerPlan) -> str:
        """Returns the host path of the checkpoint storage, without links; empty for none. It may not exist yet.

        The folder that the master itself chose is found with the agent's rights, any other with the task's user's.
        """
        given = str(plan.spec.checkpoint_storage.get("host_path") or "")
        if not given:
            return ""
        identity = None if plan.spec.is_cluster_storage else plan.identity
        return self._path(plan, STORAGE_KEY, given, identity)

    def bind_mount(self, plan: ContainerPlan, index: int) -> str:
        """Returns the host path of an entry of ``bind_mounts``, without links."""
        key = f"bind_mounts[{index}].host_path"
        given = str(plan.spec.bind_mounts[index].get("host_path", ""))
        path = self._path(plan, key, given, plan.identity)
        with self.opened(plan.identity, key, path):
            return path

    def device(self, plan: ContainerPlan, index: int) -> str:
        """Returns the host path of an entry of ``resources.devices``, without links."""
        key = f"resources.devices[{index}].host_path"
        given = str(plan.spec.devices[index].get("host_path", ""))
        path = _resolved(key, given, None)
        if not is_allowed_device(path, self._devices):
            raise _refused(f"{key}: the administrator of this agent does not allow {path}", "allowed_devices", path)
        if not os.path.exists(path):
            raise NotStarted(f"{key}: {path} does not exist on this machine")
        if not is_fixed(path):
            raise NotStarted(f"{key}: others than root can exchange {path}, because a folder above it is open to them")
        return path

    def refuse(self, path: str, key: str, identity: Identity | None, own_storage: str = "") -> HostRules:
        """Raises NotStarted unless a container gets ``path``, which has no links. Returns the rules. Blocking.

        Args:
            path: the path, without links.
            key: key of the configuration that names it.
            identity: user of the container if it is not the agent's own.
            own_storage: the task's storage if the master itself chose it.
        """
        rules = self._rules(path, own_storage)
        refusal = rules.refusal(path, has_own_user=identity is not None)
        if refusal is None and not (rules.is_named(path) or can_mount_as_root()):
            listed = rules.listed_above(path)
            # Whoever can write to a folder above it can exchange it for a link while the engine mounts it.
            is_root = identity is None and os.geteuid() == 0
            if is_root or listed is None or not is_fixed(path, listed):
                reason = (
                    f"{path} is not named itself, and this agent cannot hold it while the engine mounts it, for which "
                    "an agent needs root's rights on the engine's own machine (CAP_SYS_ADMIN)"
                )
                refusal = Refusal(reason, path)
        if refusal is not None:
            raise _refused(f"{key}: {refusal.reason}", "allowed_host_paths", refusal.missing)
        return rules

    @contextlib.contextmanager
    def opened(self, identity: Identity | None, key: str, path: str, *, makes: bool = False) -> Iterator[int]:
        """Yields a descriptor of ``path``, opened with the rights of the task's user and through no link. Blocking.

        ``makes``: creates missing folders with the same rights. Raises NotStarted.
        """
        try:
            with _rights(identity):
                descriptor = _open_without_links(path, makes=makes)
        except FileNotFoundError as error:
            raise NotStarted(f"{key}: {path} does not exist on this machine") from error
        except OSError as error:
            who = f"uid {identity.uid}" if identity else "the agent's user"
            deed = "cannot use" if key == STORAGE_KEY else "may not reach host_path"
            raise NotStarted(f"{key}: {who} {deed} {path}: {error.strerror}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _path(self, plan: ContainerPlan, key: str, given: str, identity: Identity | None) -> str:
        path = _resolved(key, given, identity)
        self.refuse(path, key, plan.identity, cluster_storage(plan))
        return path

    def _check_capabilities(self, wanted: Sequence[str]) -> None:
        allowed = {capability(each) for each in self._settings.allowed_capabilities}
        refused = [name for name in map(capability, wanted) if name not in allowed and "ALL" not in allowed]
        if refused:
            names = ", ".join(dict.fromkeys(refused))
            raise _refused(
                f"{CAPABILITIES_KEY}: the administrator of this agent does not allow {names}",
                "allowed_capabilities",
                *dict.fromkeys(refused),
            )

    def _rules(self, path: str, own_storage: str) -> HostRules:
        settings, told = self._settings, self._told()
        storage = [self._storage.setdefault(each, os.path.realpath(each)) for each in told.storage]
        storage += [os.path.realpath(own_storage)] if own_storage else []
        protected = {os.path.realpath(settings.data): "this agent's data folder", PROCESSES: "the machine's processes"}
        for socket in _sockets(settings):
            protected[socket] = "the container engine's socket"
        if settings.token_file is not None:
            protected[os.path.realpath(settings.token_file)] = "the cluster's join token"
        found = [str(each) for each in (path, *PurePath(path).parents) if is_master_folder(str(each))]
        if told.data and is_master_folder(told.data, if_unknown=True):
            found.append(os.path.realpath(told.data))
        for folder in found:
            protected[folder] = "the master's data folder"
        return HostRules(
            self._folders,
            tuple(storage),
            protected,
        )


def cluster_storage(plan: ContainerPlan) -> str:
    """Returns the task's storage if the master itself chose it; masters of earlier versions say it only so."""
    return str(plan.spec.checkpoint_storage.get("host_path") or "") if plan.spec.is_cluster_storage else ""


def is_below(path: str, folder: str) -> bool:
    """Returns True if ``path`` is ``folder`` or below it.

    >>> is_below("/a/b", "/a"), is_below("/a", "/a"), is_below("/ab", "/a"), is_below("/a", "/")
    (True, True, False, True)
    """
    return PurePath(path).is_relative_to(folder)


def capability(name: str) -> str:
    """Returns a capability as container engines call it.

    >>> capability("cap_sys_ptrace"), capability("SYS_PTRACE")
    ('SYS_PTRACE', 'SYS_PTRACE')
    """
    return name.strip().upper().removeprefix("CAP_")


def is_allowed_device(path: str, allowed: Iterable[str]) -> bool:
    """Returns True if ``path`` is listed, matches a pattern, or is below a folder that does.

    >>> is_allowed_device("/dev/infiniband/uverbs0", ["/dev/infiniband"]), is_allowed_device("/dev/sda", ["/dev/nv*"])
    (True, False)
    """
    places = [path, *map(str, PurePath(path).parents)]
    return any(fnmatchcase(place, pattern.rstrip("/")) for place in places for pattern in allowed)


def _sockets(settings: Settings) -> Iterator[str]:
    for address in (settings.engine_address, *ENGINE_URLS.values(), _CONTAINERD):
        path = address.removeprefix(_UNIX)
        if path.startswith("/"):
            yield os.path.realpath(path)


def _refused(text: str, setting: str, *values: str) -> NotStarted:
    listed = ", ".join(each if _PLAIN.fullmatch(each) else json.dumps(each) for each in values)
    return NotStarted(f"{text}. To allow it, an administrator adds to agent.yaml: {setting}: [{listed}]")


def _resolved(key: str, given: str, identity: Identity | None) -> str:
    if not os.path.isabs(given) or "\0" in given:
        raise NotStarted(f"{key}: {given or '(empty)'} is not an absolute path")
    try:
        with _rights(identity):
            return os.path.realpath(given)
    except OSError as error:
        raise NotStarted(f"{key}: cannot follow the links of {given}: {error.strerror}") from error


def _rights(identity: Identity | None) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if identity is None else identity.file_rights()


def _open_without_links(path: str, *, makes: bool) -> int:
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    current = os.open("/", flags)
    try:
        for name in PurePath(path).parts[1:]:
            try:
                following = os.open(name, flags, dir_fd=current)
            except FileNotFoundError:
                if not makes:
                    raise
                with contextlib.suppress(FileExistsError):  # another task that starts may have made it
                    os.mkdir(name, dir_fd=current)
                following = os.open(name, flags, dir_fd=current)
            os.close(current)
            current = following
            if stat.S_ISLNK(os.fstat(current).st_mode):
                raise OSError(errno.ELOOP, f"{name} has become a link")
    except BaseException:
        os.close(current)
        raise
    return current


def is_fixed(path: str, above: str = "/") -> bool:
    """Returns True if nobody but root can exchange ``path``, or a folder between it and ``above``. Blocking."""
    try:
        child = os.lstat(path)
        for folder in map(str, PurePath(path).parents):
            if not is_below(folder, above):
                break
            parent = os.stat(folder)
            is_open = parent.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            # In a folder such as /tmp nobody exchanges what is another's.
            is_kept = parent.st_mode & stat.S_ISVTX and child.st_uid == 0
            if parent.st_uid != 0 or (is_open and not is_kept):
                return False
            child = parent
    except OSError:
        return False
    return True
