"""The user and groups as which a task runs, and how a process becomes them. Standard library only; the shim uses it."""

import contextlib
import ctypes
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from determined_agent.task_process.processes import libc

_PR_SET_NO_NEW_PRIVS = 38
_SETGROUPS, _SETFSUID, _SETFSGID = {
    "x86_64": (116, 122, 123),
    "aarch64": (159, 151, 152),
}.get(os.uname().machine, (0, 0, 0))


class Identity(NamedTuple):
    """A user of this machine, who may have no name on it. ``groups`` are the supplementary groups."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    group_name: str
    home: str = ""
    """Home folder; empty if the user has none."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> "Identity | None":
        return None if value is None else cls(**{**value, "groups": tuple(value["groups"])})

    def become(self) -> None:
        """Makes this process the user's for good: no program that it executes gets other rights. Raises OSError."""
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)
        if os.getresuid() != (self.uid,) * 3 or os.getresgid() != (self.gid,) * 3:
            raise PermissionError(f"cannot become uid {self.uid} and gid {self.gid}")
        # A task can mount its own files over those that su and sudo trust.
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot give up further privileges")

    @contextlib.contextmanager
    def acting(self) -> Iterator[None]:
        """Gives this process the user's rights for a while; only for a process with one thread, as root."""
        groups, gid = os.getgroups(), os.getegid()
        os.setgroups(self.groups)
        os.setegid(self.gid)
        os.seteuid(self.uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(gid)
            os.setgroups(groups)

    @contextlib.contextmanager
    def file_rights(self) -> Iterator[None]:
        """Gives this thread the user's rights on files for a while; only for root. Raises OSError."""
        if not _SETGROUPS:
            raise OSError(f"tasks of other users are not supported on {os.uname().machine}")
        groups, uid, gid = os.getgroups(), os.geteuid(), os.getegid()
        try:
            # The calls of the C library would change all threads.
            _set_groups(self.groups)
            libc.syscall(_SETFSGID, self.gid)
            libc.syscall(_SETFSUID, self.uid)
            # A uid is unsigned, and the C library returns an int.
            if libc.syscall(_SETFSUID, -1) & 0xFFFFFFFF != self.uid:
                raise PermissionError(f"cannot act as uid {self.uid}")
            yield
        finally:
            libc.syscall(_SETFSUID, uid)
            libc.syscall(_SETFSGID, gid)
            _set_groups(groups)


def _set_groups(groups: "tuple[int, ...] | list[int]") -> None:
    numbers = (ctypes.c_uint32 * len(groups))(*groups)
    if libc.syscall(_SETGROUPS, len(groups), numbers) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
