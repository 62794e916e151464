"""Finds the identity of a task's owner on this machine, and gives a user without an account one for its task."""

import grp
import os
import pwd
from pathlib import Path

from determined.link.messages import RunAs
from determined_agent.task_process.identity import Identity

PASSWD, GROUP = Path("/etc/passwd"), Path("/etc/group")


def find_identity(run_as: RunAs) -> Identity:
    """Returns the identity with what this machine knows about the user. Blocking: the machine may ask a directory.

    The supplementary groups are those of the account. An account counts only if it has the uid that the admin gave.
    """
    account = _account(run_as)
    name = account.pw_name if account else run_as.user or f"uid{run_as.uid}"
    groups = os.getgrouplist(account.pw_name, run_as.gid) if account else [run_as.gid]
    home = account.pw_dir if account and os.path.isdir(account.pw_dir) else ""
    return Identity(run_as.uid, run_as.gid, tuple(groups), name, run_as.group or f"gid{run_as.gid}", home)


def _account(run_as: RunAs) -> pwd.struct_passwd | None:
    try:
        named = pwd.getpwnam(run_as.user) if run_as.user else None
    except KeyError:
        named = None
    if named is not None and named.pw_uid == run_as.uid:
        return named
    try:
        return pwd.getpwuid(run_as.uid)
    except KeyError:
        return None


def has_account(identity: Identity) -> bool:
    """Returns True if this machine knows both the user and the group."""
    try:
        pwd.getpwuid(identity.uid)
        grp.getgrgid(identity.gid)
    except KeyError:
        return False
    return True


def with_user(passwd: str, identity: Identity) -> str:
    """Returns the text of ``/etc/passwd`` with a line for the user, unless it has one for this uid."""
    fields = [line.split(":") for line in passwd.splitlines()]
    if any(each[2:3] == [str(identity.uid)] for each in fields):
        return passwd
    name = identity.name if all(each[0] != identity.name for each in fields) else f"uid{identity.uid}"
    return _added(passwd, f"{name}:x:{identity.uid}:{identity.gid}::{identity.home}:/bin/sh")


def with_group(group: str, identity: Identity) -> str:
    """Returns the text of ``/etc/group`` with a line for the group, unless it has one for this gid."""
    fields = [line.split(":") for line in group.splitlines()]
    if any(each[2:3] == [str(identity.gid)] for each in fields):
        return group
    taken = any(each[0] == identity.group_name for each in fields)
    return _added(group, f"{f'gid{identity.gid}' if taken else identity.group_name}:x:{identity.gid}:")


def _added(text: str, line: str) -> str:
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"
