"""The task's environment variables, its Python, and the library that it trains with."""

import asyncio
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from determined_agent import devices
from determined_agent.drivers.driver import NotStarted
from determined_agent.harness_copy import keep_harness
from determined_agent.hooks.hook import PRIVATE_SHARED_FS, Draft, assign
from determined_agent.settings import Settings, task_python_of_agent
from determined_agent.task_python import OLDEST, PythonProbe, choose, put_first
from determined_launch import environment as names


class EnvironmentHook:
    """Base environment → the user's variables → the task's Python → the master's variables → the agent's own."""

    def __init__(self, settings: Settings, agent_id: str, slots: int, probe: PythonProbe) -> None:
        self._settings = settings
        self._agent_id = agent_id
        self._slots = slots
        self._probe = probe

    async def do(self, draft: Draft) -> None:
        spec, environment = draft.spec, draft.environment
        environment.update(self._settings.base_environment)
        environment["PYTHONUNBUFFERED"] = "1"  # a line that is followed live must not wait for the next 8 KiB
        if spec.slots and self._slots:
            # A slot's share, for a rank has one slot: with the container's, its ranks would stand in each other's way.
            environment["OMP_NUM_THREADS"] = str(max(devices.cores() // self._slots, 1))
        refused = assign(environment, spec.user_environment, spec.environment)
        if refused:
            draft.say(f"environment_variables: set by the cluster, not by users: {', '.join(refused)}", "WARNING")
        own = task_python_of_agent()
        draft.task_python, ignored = choose(spec.image, self._settings.task_python, own)
        if ignored:
            draft.say(
                f"environment.image: {ignored} is ignored: tasks are plain processes here; "
                f"venv:PATH chooses a Python environment, {draft.task_python} is used",
                "WARNING",
            )
        for name in spec.ignored:
            draft.say(f"{name} is ignored: tasks are plain processes here", "WARNING")
        if os.geteuid() == 0:
            draft.say("this task runs as root, the user of its agent", "WARNING")
        put_first(environment, draft.task_python)
        draft.harness_copy = await asyncio.to_thread(keep_harness, self._settings.data)
        await self._choose_harness(draft)
        environment.update(spec.environment)
        environment.update(self._facts(draft))

    async def undo(self, draft: Draft) -> None:
        """Nothing outside the draft was touched."""

    async def _choose_harness(self, draft: Draft) -> None:
        wanted = draft.spec.harness
        facts = await self._probe.ask(draft.task_python)
        if wanted == "installed" and facts.official is None:
            raise NotStarted(
                f"environment.harness: installed: {draft.task_python} holds no distribution named determined"
            )
        if facts.official is not None and wanted != "ours":
            draft.has_private_paths = True
            draft.say(f"library: determined {facts.official}, installed in {draft.task_python}")
            return
        if facts.version < OLDEST:
            raise NotStarted(
                f"{draft.task_python} is Python {facts.version[0]}.{facts.version[1]}; "
                f"tasks need {OLDEST[0]}.{OLDEST[1]} or newer"
            )
        users = draft.environment.get("PYTHONPATH")
        draft.environment["PYTHONPATH"] = os.pathsep.join([str(draft.harness_copy), *([users] if users else [])])
        draft.say(f"library: determined of this cluster, with {draft.task_python}")

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
