"""Prepares the image of a container and the environment variables of its task."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from determined.environments.inputs import name_of
from determined.link.messages import SlotFacts
from determined_agent import devices
from determined_agent.drivers.driver import ContainerOptions, NotStarted
from determined_agent.environments.harness_copy import keep_harness
from determined_agent.hooks.environment import choose_library, say_user, task_facts
from determined_agent.hooks.hook import ContainerPlan, assign
from determined_agent.hooks.identity import set_user_variables
from determined_agent.images.image_store import COMPILE_ADVICE, Images
from determined_agent.settings import PROXY_VARIABLES, Settings
from determined_agent.task_process.namespaces import Mount
from determined_launch import environment as names
from determined_launch import wandb_run

HARNESS_FOLDER = Path("/opt/detent/harness")
"""Folder of the in-task packages inside every container."""
PYTHON = Path("python3")


class ContainerEnvironmentHook:
    """Sets variables in this order: the image's, proxies of the machine, the user's, the master's, the agent's own."""

    def __init__(self, settings: Settings, agent_id: str, slots: Sequence[SlotFacts], images: Images) -> None:
        self._settings = settings
        self._agent_id = agent_id
        self._slots = {slot.id: slot for slot in slots}
        self._images = images

    async def do(self, plan: ContainerPlan) -> None:
        spec, environment, settings = plan.spec, plan.environment, self._settings
        if spec.venv is not None:
            setting = "environment.pip" if "pip" in spec.venv else "environment.venv"
            raise NotStarted(
                f"{setting}: this agent runs tasks in containers, whose packages belong to the image; install "
                f"{name_of(spec.venv)} there, or use a pool whose agents run tasks as processes"
            )
        kind = self._kind(spec.slots)
        wanted = spec.images or ({"cpu": spec.image} if spec.image else {})
        name = self._images.choose(wanted, kind, plan.log_line)
        facts = await self._images.find(name, plan.log_line, force=spec.force_pull_image, auth=spec.registry_auth)
        plan.container = ContainerOptions(
            image=name,
            labels={"detent.task": spec.task_id, "detent.allocation": spec.environment.get(names.ALLOCATION_ID, "")},
            shm_bytes=spec.shm_bytes or settings.shm_bytes,  # an engine takes 0 for its own 64 MiB
            add_capabilities=tuple(spec.add_capabilities),
            drop_capabilities=tuple(spec.drop_capabilities),
            memory_bytes=settings.memory_bytes,
            cpus=settings.cpus,
            pids=settings.pids,
        )
        plan.bash = facts.bash
        plan.has_private_paths = True
        plan.task_python = PYTHON
        plan.harness_copy = HARNESS_FOLDER
        proxies = {name: value for name, value in settings.base_environment.items() if name in PROXY_VARIABLES}
        environment.update(proxies | {"PYTHONUNBUFFERED": "1"})
        set_user_variables(plan)
        if spec.slots and self._slots:
            environment["OMP_NUM_THREADS"] = devices.threads(len(self._slots), settings.base_environment)
        refused = assign(environment, spec.device_environment.get(kind) or spec.user_environment, spec.environment)
        if refused:
            plan.log_line(
                f"environment_variables: these variables are reserved for the cluster: {', '.join(refused)}", "WARNING"
            )
        say_user(plan, "this task runs as root in its container")
        choose_library(plan, f"image {name}", facts.official, facts.version, facts.torch)
        if facts.uncompiled:
            plan.start_note = (
                f"image {name} holds no byte code of {facts.uncompiled}: each start compiles the modules that it "
                f"imports, which takes seconds. {COMPILE_ADVICE}"
            )
            plan.log_line(plan.start_note)
        copy = await asyncio.to_thread(keep_harness, settings.data)
        plan.mounts.append(Mount(str(copy), str(HARNESS_FOLDER), read_only=True))
        environment.update(spec.environment)
        if spec.rank == 0:
            environment.update(wandb_run.variables(environment))
        environment.update(task_facts(plan, settings, self._agent_id))

    async def warm(self) -> None:
        """Prepares slow steps before the first container."""
        await asyncio.to_thread(keep_harness, self._settings.data)

    async def undo(self, plan: ContainerPlan) -> None:
        plan.container = None

    def _kind(self, slots: Sequence[int]) -> str:
        """Returns the type of a task's slots; a task without slots runs on the CPU."""
        kinds = [self._slots[number].type for number in slots if number in self._slots]
        return kinds[0] if kinds else "cpu"
