"""Sets the environment variables of a task, its Python, and the library that it trains with."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from determined_agent import devices
from determined_agent.attempt_venv import FOLDER, make_attempt_venv, use_attempt_venv
from determined_agent.drivers.driver import NotStarted
from determined_agent.harness_copy import keep_harness
from determined_agent.hooks.hook import PRIVATE_SHARED_FS, Draft, assign
from determined_agent.settings import Settings, task_python_of_agent
from determined_agent.task_base import TaskBases
from determined_agent.task_python import OLDEST, PythonFacts, PythonProbe, choose
from determined_launch import environment as names


class EnvironmentHook:
    """Sets variables in this order: base environment, the user's, the task's Python, the master's, the agent's own."""

    def __init__(self, settings: Settings, agent_id: str, slots: int, probe: PythonProbe) -> None:
        self._settings = settings
        self._agent_id = agent_id
        self._slots = slots
        self._probe = probe
        self._bases = TaskBases(settings.data)

    async def do(self, draft: Draft) -> None:
        spec, environment = draft.spec, draft.environment
        environment.update(self._settings.base_environment)
        environment["PYTHONUNBUFFERED"] = "1"  # lines must appear immediately, not after 8 KiB
        if spec.slots and self._slots:
            # The share of one slot, because a rank has one slot: ranks with all cores would slow each other down.
            environment["OMP_NUM_THREADS"] = str(max(devices.cores() // self._slots, 1))
        refused = assign(environment, spec.user_environment, spec.environment)
        if refused:
            draft.say(
                f"environment_variables: these variables are reserved for the cluster: {', '.join(refused)}", "WARNING"
            )
        python, ignored = await asyncio.to_thread(
            choose, spec.image, self._settings.task_python, task_python_of_agent()
        )
        if ignored:
            draft.say(
                f"environment.image: {ignored} is ignored: this agent runs tasks as processes, without containers. "
                f"The task uses {python}; venv:PATH selects another Python environment",
                "WARNING",
            )
        for name in spec.ignored:
            draft.say(f"{name} is ignored: this agent runs tasks as processes, without containers", "WARNING")
        if os.geteuid() == 0:
            draft.say("this task runs as root, the user of its agent", "WARNING")
        facts = await self._probe.ask(python)
        draft.harness_copy = await asyncio.to_thread(keep_harness, self._settings.data)
        _choose_harness(draft, python, facts)
        await self._make_venv(draft, facts)
        environment.update(spec.environment)
        environment.update(self._facts(draft))

    async def warm(self) -> None:
        """Prepares slow steps before the first container."""
        await asyncio.to_thread(keep_harness, self._settings.data)
        facts = await self._probe.ask(self._settings.task_python or task_python_of_agent())
        await asyncio.to_thread(self._bases.find, facts)

    async def undo(self, draft: Draft) -> None:
        await asyncio.to_thread(shutil.rmtree, draft.folder.run / FOLDER, True)

    async def _make_venv(self, draft: Draft, facts: PythonFacts) -> None:
        base = await asyncio.to_thread(self._bases.find, facts)
        seen_as = draft.run_dir / FOLDER
        await asyncio.to_thread(make_attempt_venv, draft.folder.run / FOLDER, seen_as, base)
        draft.task_python = use_attempt_venv(draft.environment, seen_as, base)
        draft.read_only.extend(base.protected)

    def _facts(self, draft: Draft) -> dict[str, str]:
        spec = draft.spec
        parts = urlsplit(self._settings.master)
        facts = {
            names.MASTER: self._settings.master,
            "DET_MASTER_HOST": parts.hostname or "",
            "DET_MASTER_ADDR": parts.hostname or "",
            "DET_MASTER_PORT": str(parts.port or (443 if parts.scheme == "https" else 80)),
            "DET_USE_TLS": str(parts.scheme == "https").lower(),
            names.AGENT_ID: self._agent_id,
            names.CONTAINER_ID: draft.container_id,
            names.RUN_DIR: str(draft.run_dir),
            names.WORKDIR: str(draft.workdir),
            names.PYTHON_EXECUTABLE: str(draft.task_python),
            names.TASK_PYTHON: str(draft.task_python),
            names.ENTRYPOINT_JSON: json.dumps(spec.entrypoint),
        }
        storage = spec.checkpoint_storage
        if storage.get("host_path"):
            host_path = Path(str(storage["host_path"]))
            facts[names.SHARED_FS] = PRIVATE_SHARED_FS if draft.has_private_paths else str(host_path)
        facts.setdefault(names.SLOT_IDS, spec.environment.get(names.SLOT_IDS) or json.dumps(spec.slots))
        return facts


def _choose_harness(draft: Draft, python: Path, facts: PythonFacts) -> None:
    """Chooses the installed library or the cluster's. ``python`` is the Python by the name that the user knows."""
    wanted = draft.spec.harness
    if wanted == "installed" and facts.official is None:
        raise NotStarted(f"environment.harness: installed needs the package determined, which {python} does not have")
    if facts.official is not None and wanted != "ours":
        draft.has_private_paths = True
        draft.say(f"library: determined {facts.official}, installed in {python}")
        return
    if facts.version < OLDEST:
        raise NotStarted(
            f"{python} is version {facts.version[0]}.{facts.version[1]}; tasks need {OLDEST[0]}.{OLDEST[1]} or newer"
        )
    users = draft.environment.get("PYTHONPATH")
    draft.environment["PYTHONPATH"] = os.pathsep.join([str(draft.harness_copy), *([users] if users else [])])
    draft.say(f"library: determined of this cluster, with {python}")
