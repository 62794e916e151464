"""Sets the environment variables of a task, its Python, and the library that it trains with."""

import asyncio
import contextlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from determined.client.certificates import FILE_VARIABLE, NAME_VARIABLE, NO_VERIFY
from determined.link.messages import ContainerSpec
from determined_agent import devices
from determined_agent.drivers.driver import NotStarted
from determined_agent.environments import installed_library
from determined_agent.environments.attempt_venv import FOLDER, keep_programs, make_attempt_venv, use_attempt_venv
from determined_agent.environments.harness_copy import keep_harness
from determined_agent.environments.task_base import TaskBase, TaskBases, base_seen_at, built_base
from determined_agent.environments.task_python import OLDEST, PythonFacts, PythonProbe, choose, folders_of
from determined_agent.hooks.hook import PRIVATE_SHARED_FS, ContainerPlan, assign
from determined_agent.hooks.identity import set_user_variables
from determined_agent.run_folders.tree_removal import remove_tree
from determined_agent.settings import Settings, task_python_of_agent
from determined_agent.task_process.namespaces import Mount
from determined_launch import environment as names
from determined_launch import wandb_run

PRIVATE_HARNESS, PRIVATE_BASE = Path("/run/detent/harness"), Path("/run/detent/base")
"""Folders of the in-task packages and of the task base for users who cannot pass the agent's data folder."""

PRIVATE_PROGRAMS = Path("/run/detent/programs")
"""Folder of the task base's programs, for the same users."""
PRIVATE_BUILD = Path("/run/detent/environment")
"""Folder of an environment that a task has built, for users who cannot pass the agent's data folder."""
CERTIFICATE = "master.crt"
"""Name of the copy of the master's certificate among a task's info files."""


class EnvironmentHook:
    """Sets variables in this order: base environment, the user's, the task's Python, the master's, the agent's own."""

    def __init__(self, settings: Settings, agent_id: str, slots: int, probe: PythonProbe) -> None:
        self._settings = settings
        self._agent_id = agent_id
        self._slots = slots
        self._probe = probe
        self._bases = TaskBases(settings.data)

    async def do(self, plan: ContainerPlan) -> None:
        spec, environment = plan.spec, plan.environment
        environment.update(self._settings.base_environment)
        set_user_variables(plan)
        environment["PYTHONUNBUFFERED"] = "1"  # lines must appear immediately, not after 8 KiB
        if spec.slots and self._slots:
            environment["OMP_NUM_THREADS"] = devices.threads(self._slots, self._settings.base_environment)
        refused = assign(environment, spec.user_environment, spec.environment)
        if refused:
            plan.log_line(
                f"environment_variables: these variables are reserved for the cluster: {', '.join(refused)}", "WARNING"
            )
        python, ignored = await asyncio.to_thread(
            choose, spec.image, self._settings.task_python, task_python_of_agent()
        )
        where = str(python)
        if ignored:
            plan.log_line(
                f"environment.image: {ignored} is ignored: this agent runs tasks as processes, without containers. "
                f"The task uses {python}; venv:PATH selects another Python environment",
                "WARNING",
            )
        for name in [*spec.ignored, *_container_settings(spec)]:
            plan.log_line(f"{name} is ignored: this agent runs tasks as processes, without containers", "WARNING")
        say_user(plan, "this task runs as root, the user of its agent")
        # A Python that the task's owner chose never runs as another user.
        is_users = spec.image is not None and spec.image.startswith("venv:")
        facts = plan.built
        if facts is None:
            facts = await self._probe.ask(python, plan.identity if is_users else None)
        else:
            where = f"the environment of {spec.venv and spec.venv['requirements']}"
        plan.harness_copy = await self._harness(plan)
        official = plan.added.official if plan.added is not None else None
        choose_library(plan, where, official or facts.official, facts.version, facts.torch)
        plan.bash = shutil.which("bash", path=environment.get("PATH", os.defpath))
        if plan.built is not None:
            base = await asyncio.to_thread(self._built_base, plan, plan.built)
            if plan.identity is not None:
                # Of the agent's Python, under which it was built: its own links are the user's, and lead anywhere.
                facts = await self._probe.ask(self._settings.task_python or task_python_of_agent())
                plan.reachable += await asyncio.to_thread(_python_folders, facts)
        else:
            base = await self._base(plan, facts, is_users=is_users)
            if plan.added is not None:
                base = base.with_added(await asyncio.to_thread(self._built_base, plan, plan.added))
        seen_as = plan.run_dir / FOLDER
        programs = await asyncio.to_thread(self._make_venv, plan, seen_as, base)
        plan.task_python = use_attempt_venv(environment, seen_as, base, programs)
        plan.read_only.extend(base.protected)
        environment.update(spec.environment)
        if spec.rank == 0:
            environment.update(wandb_run.variables(environment))
        environment.update(task_facts(plan, self._settings, self._agent_id))

    async def warm(self) -> None:
        """Prepares slow steps before the first container."""
        await asyncio.to_thread(keep_harness, self._settings.data)
        facts = await self._probe.ask(self._settings.task_python or task_python_of_agent())
        await asyncio.to_thread(self._bases.find, facts)

    async def undo(self, plan: ContainerPlan) -> None:
        await asyncio.to_thread(remove_tree, plan.folder.run / FOLDER)

    async def _harness(self, plan: ContainerPlan) -> Path:
        """Returns the copy of the in-task packages as the task sees it."""
        copy = await asyncio.to_thread(keep_harness, self._settings.data)
        if plan.identity is None:
            return copy
        plan.mounts.append(Mount(str(copy), str(PRIVATE_HARNESS), True))
        return PRIVATE_HARNESS

    def _make_venv(self, plan: ContainerPlan, seen_as: Path, base: TaskBase) -> Path:
        """Returns the folder of the base's programs as the task sees it. Blocking."""
        make_attempt_venv(plan.folder.run / FOLDER, seen_as, base)
        programs = keep_programs(self._settings.data, base)
        if plan.identity is None:
            plan.read_only.append(programs)
            return programs
        plan.mounts.append(Mount(str(programs), str(PRIVATE_PROGRAMS), True))
        return PRIVATE_PROGRAMS

    def _built_base(self, plan: ContainerPlan, facts: PythonFacts) -> TaskBase:
        """Returns the base of the task's own environment as the task sees it. Blocking."""
        base = built_base(facts)
        if plan.identity is None:
            return base
        build = facts.prefix.parent
        plan.mounts.append(Mount(str(build), str(PRIVATE_BUILD), True))
        sites = tuple(PRIVATE_BUILD / site.relative_to(build) for site in base.site_folders)
        scripts = PRIVATE_BUILD / base.scripts_folder.relative_to(build)
        return replace(base, site_folders=sites, scripts_folder=scripts)

    async def _base(self, plan: ContainerPlan, facts: PythonFacts, *, is_users: bool) -> TaskBase:
        rights = plan.identity.file_rights if plan.identity and is_users else contextlib.nullcontext

        def find() -> TaskBase:
            with rights():
                return self._bases.find(facts)

        base = await asyncio.to_thread(find)
        if plan.identity is not None and not is_users:
            plan.reachable += [*await asyncio.to_thread(_python_folders, facts), *facts.site_folders]
            base, mount = base_seen_at(PRIVATE_BASE, base, self._settings.data)
            plan.mounts.extend([mount] if mount else [])
        return base


def _python_folders(facts: PythonFacts) -> list[Path]:
    """Returns the folders of a Python that the agent chose, and of the agent's own. Blocking."""
    return [*folders_of(facts.interpreter), *folders_of(task_python_of_agent())]


def _container_settings(spec: ContainerSpec) -> list[str]:
    """Returns the settings of a task that only a container can have."""
    given = {
        "shm_size": spec.shm_bytes,
        "devices": spec.devices,
        "add_capabilities": spec.add_capabilities,
        "drop_capabilities": spec.drop_capabilities,
        "ports": spec.ports,
        "force_pull_image": spec.force_pull_image,
        "registry_auth": spec.registry_auth,
    }
    return [name for name, value in given.items() if value]


def say_user(plan: ContainerPlan, as_root: str) -> None:
    """Says in the log as whom the task runs. ``as_root``: the line for a task of an agent that is root."""
    identity = plan.identity
    if identity is not None:
        plan.log_line(f"this task runs as {identity.name} (uid {identity.uid}, gid {identity.gid})")
    elif os.geteuid() == 0:
        plan.log_line(as_root, "WARNING")


def choose_library(
    plan: ContainerPlan, where: str, official: str | None, version: tuple[int, int], torch: str | None
) -> None:
    """Chooses the library that the task imports: the cluster's, or one that is installed where it runs.

    Args:
        plan: gets the choice, and a line in its log.
        where: the Python or the image, by the name that the user knows.
        official: version of the distribution ``determined`` that is installed there, or None.
        version: version of the Python there.
        torch: version of torch that is installed there, or None.
    """
    wanted = plan.spec.harness
    if wanted == "installed" and official is None:
        raise NotStarted(f"environment.harness: installed needs the package determined, which {where} does not have")
    if official is not None and wanted != "ours":
        plan.has_private_paths = plan.has_installed_library = True
        plan.log_line(f"library: determined {official}, installed in {where}")
        if names.TRIAL_ID in plan.spec.environment:
            plan.log_line(installed_library.consequence(official))
            if warning := installed_library.unreadable_checkpoints(official, torch, plan.environment):
                plan.log_line(warning, "WARNING")
        return
    if version < OLDEST:
        raise NotStarted(f"{where} has Python {version[0]}.{version[1]}; tasks need {OLDEST[0]}.{OLDEST[1]} or newer")
    users = plan.environment.get("PYTHONPATH")
    plan.environment["PYTHONPATH"] = os.pathsep.join([str(plan.harness_copy), *([users] if users else [])])
    plan.log_line(f"library: determined of this cluster, with {where}")


def task_facts(plan: ContainerPlan, settings: Settings, agent_id: str) -> dict[str, str]:
    """Returns the variables that the agent itself sets."""
    spec = plan.spec
    parts = urlsplit(settings.master)
    facts = {
        names.MASTER: settings.master,
        "DET_MASTER_HOST": parts.hostname or "",
        "DET_MASTER_ADDR": parts.hostname or "",
        "DET_MASTER_PORT": str(parts.port or (443 if parts.scheme == "https" else 80)),
        "DET_USE_TLS": str(parts.scheme == "https").lower(),
        names.AGENT_ID: agent_id,
        names.CONTAINER_ID: plan.container_id,
        names.RUN_DIR: str(plan.run_dir),
        names.WORKDIR: str(plan.workdir),
        names.PYTHON_EXECUTABLE: str(plan.task_python),
        names.TASK_PYTHON: str(plan.task_python),
        names.ENTRYPOINT_JSON: json.dumps(spec.entrypoint),
    }
    if parts.scheme == "https" and settings.master_cert_file:
        copy = str(plan.run_dir / "info" / CERTIFICATE)
        facts[FILE_VARIABLE] = copy if settings.trust.verifies else NO_VERIFY
    if parts.scheme == "https" and settings.master_cert_name:
        facts[NAME_VARIABLE] = settings.master_cert_name
    storage = spec.checkpoint_storage
    if storage.get("host_path"):
        host_path = Path(str(storage["host_path"]))
        facts[names.SHARED_FS] = PRIVATE_SHARED_FS if plan.has_private_paths else str(host_path)
    facts.setdefault(names.SLOT_IDS, spec.environment.get(names.SLOT_IDS) or json.dumps(spec.slots))
    return facts
