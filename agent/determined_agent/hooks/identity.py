"""Decides as which user of the machine a task runs, and hands the task's folders over to that user."""

import asyncio
import os
from pathlib import Path

from determined.link.messages import RunAs
from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import PRIVATE_RUN, ContainerPlan
from determined_agent.host_access.accounts import GROUP, PASSWD, find_identity, has_account, with_group, with_user
from determined_agent.settings import Settings
from determined_agent.task_process.identity import Identity
from determined_agent.task_process.namespaces import Mount

HOME = "home"
"""Home folder, in the run folder, of a user who has none on the machine."""
_OF_AGENT = ("SHELL", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")


class IdentityHook:
    """Sets the identity of a plan. The first hook: the others prepare the task for its user."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def do(self, plan: ContainerPlan) -> None:
        wanted = self._wanted(plan)
        if wanted is not None:
            found = await asyncio.to_thread(find_identity, wanted)
            # Containers do not see the homes of the machine.
            has_home = bool(found.home) and self._settings.container_runtime == "process"
            plan.identity = found if has_home else found._replace(home=str(PRIVATE_RUN / HOME))
            plan.has_private_paths = True

    async def undo(self, plan: ContainerPlan) -> None:
        """Does nothing: the run folder is removed as a whole."""

    def _wanted(self, plan: ContainerPlan) -> RunAs | None:
        """Returns the user that the task has to become; None if that is the agent's own."""
        own, owner = os.geteuid(), plan.spec.owner or "the task's owner"
        wanted = plan.spec.run_as or self._unmapped(owner)
        if wanted is None or (wanted.uid == own and (own == 0 or wanted.gid == os.getegid())):
            return None
        if own != 0:
            raise NotStarted(
                f"{owner} is linked with uid {wanted.uid} and gid {wanted.gid}, and this agent, which runs as uid "
                f"{own} and not as root, cannot run tasks as another user. Run the agent as root, or remove the link: "
                "det user unlink-agent-user"
            )
        return wanted

    def _unmapped(self, owner: str) -> RunAs | None:
        setting = self._settings.unmapped_users
        if ":" in setting:
            uid, _, gid = setting.partition(":")
            return RunAs(uid=int(uid), gid=int(gid))
        if setting == "agent" or (not setting and self._settings.tasks_as_me):
            return None
        raise NotStarted(
            f"{owner} is linked with no user of this machine, and this agent refuses such tasks. An administrator can "
            "link the user: det user link-with-agent-user; or change the agent's setting unmapped_users"
        )


def set_user_variables(plan: ContainerPlan) -> None:
    """Replaces the variables that describe the agent's user."""
    identity = plan.identity
    if identity is None:
        return
    for name in _OF_AGENT:
        plan.environment.pop(name, None)
    plan.environment |= {"HOME": identity.home, "USER": identity.name, "LOGNAME": identity.name}


def private_mounts(plan: ContainerPlan, identity: Identity) -> list[Mount]:
    """Returns the mounts that separate a process of the machine from other users. Creates their sources."""
    folder = plan.folder
    mounts = []
    for target, source in (("/tmp", folder.temporary / "tmp"), ("/var/tmp", folder.temporary / "var-tmp")):
        source.mkdir(mode=0o700, parents=True, exist_ok=True)
        mounts.append(Mount(str(source), target))
    if not has_account(identity):
        texts = {PASSWD: with_user(_read(PASSWD), identity), GROUP: with_group(_read(GROUP), identity)}
        for path, text in texts.items():
            copy = folder.temporary / path.name
            copy.write_text(text, encoding="utf-8", errors="surrogateescape")
            copy.chmod(0o644)
            mounts.append(Mount(str(copy), str(path), True))
    return mounts


def hand_over_folder(folder: RunFolder, identity: Identity, *, is_container: bool) -> None:
    """Makes the task's folders the user's. Blocking; nothing of the task runs yet.

    The files of the agent stay its own. In a container the shim runs as the user too, so its files become the user's.
    """
    (folder.run / HOME).mkdir(mode=0o700, exist_ok=True)
    given = [folder.run]
    if is_container:
        folder.shim.mkdir(mode=0o700, exist_ok=True)
        given += [folder.shim, folder.output]
        os.chown(folder.wake, identity.uid, identity.gid)
        folder.path.chmod(0o711)  # inside the container only: the data folder around it is closed
    elif folder.temporary.is_dir():
        given += [folder.temporary / "tmp", folder.temporary / "var-tmp"]
    for root in given:
        for _base, folders, files, base in os.fwalk(root):
            os.chown(base, identity.uid, identity.gid)
            for name in (*folders, *files):
                os.chown(name, identity.uid, identity.gid, dir_fd=base, follow_symlinks=False)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
