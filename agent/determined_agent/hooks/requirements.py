"""Gives a task the environment that its list of requirements describes, or prepares the task that builds it."""

import asyncio
import json
import os

from determined.context import small_files
from determined.environments import Inputs, read_packages
from determined.environments.inputs import MAX_FILE_BYTES, name_of, wanted_inputs
from determined.errors import ConfigError, ContextError
from determined_agent.drivers.driver import NotStarted
from determined_agent.environments.environment_store import Environments, facts_of
from determined_agent.environments.task_base import base_version
from determined_agent.environments.task_python import PythonProbe, choose
from determined_agent.hooks.environment import PRIVATE_BUILD
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.master_link.contexts import Contexts
from determined_agent.settings import Settings, task_python_of_agent
from determined_agent.task_process.namespaces import Mount
from determined_launch import environment as names


class RequirementsHook:
    """Runs before the hook that chooses the Python: it waits until the environment is there."""

    def __init__(
        self, settings: Settings, agent_id: str, contexts: Contexts, environments: Environments, probe: PythonProbe
    ) -> None:
        self._settings = settings
        self._agent_id = agent_id
        self._contexts = contexts
        self._environments = environments
        self._probe = probe

    async def do(self, plan: ContainerPlan) -> None:
        if plan.spec.venv is None:
            return
        inputs = await self._inputs(plan)
        key = await self._key(plan, inputs)
        if plan.spec.builds_environment:
            await self._prepare_build(plan, key)
            return
        plan.log_line(f"environment: {name_of(plan.spec.venv)}, hash {key}")
        is_built = (self._agent_id, key) in plan.spec.built_environments
        venv = await self._environments.wait(key, plan, is_built=is_built)
        facts = await asyncio.to_thread(facts_of, venv)
        if inputs.kind == "packages":
            plan.added = facts
        else:
            plan.built = facts

    async def undo(self, plan: ContainerPlan) -> None:
        if plan.spec.builds_environment:
            self._environments.finish(plan.spec.builds_environment)
        elif plan.spec.venv is not None:
            await asyncio.to_thread(self._environments.leave, plan.container_id)

    async def _inputs(self, plan: ContainerPlan) -> Inputs:
        venv, context = plan.spec.venv, plan.spec.context
        assert venv is not None
        if "pip" in venv:
            return read_packages(venv["pip"])
        if context is None:
            raise NotStarted(f"environment.venv needs a context folder with {venv['requirements']}")
        path = await self._contexts.fetch(context)

        def find() -> Inputs:
            with small_files(path, MAX_FILE_BYTES) as content:
                return wanted_inputs(venv, content)

        try:
            return await asyncio.to_thread(find)
        except (ConfigError, ContextError) as problem:
            raise NotStarted(problem.message) from problem

    async def _key(self, plan: ContainerPlan, inputs: Inputs) -> str:
        """Returns the name of the environment: one for each list, Python and user of this machine. Packages that are
        added to a Python also depend on those that it has."""
        is_added = inputs.kind == "packages"
        image = plan.spec.image if is_added else None
        python, _ = await asyncio.to_thread(choose, image, self._settings.task_python, task_python_of_agent())
        is_users = image is not None and image.startswith("venv:")
        facts = await self._probe.ask(python, plan.identity if is_users else None)
        user = f"{plan.identity.uid}:{plan.identity.gid}" if plan.identity else ""
        base = await asyncio.to_thread(base_version, facts) if is_added else ()
        return inputs.key(str(facts.interpreter), ".".join(map(str, facts.version)), user, *base)

    async def _prepare_build(self, plan: ContainerPlan, key: str) -> None:
        wanted = plan.spec.builds_environment
        if key != wanted:
            raise NotStarted(
                f"the Python of this agent, or the user of the task, has changed: the environment would be {key}, "
                f"not {wanted}"
            )
        folder = await asyncio.to_thread(self._environments.make, key)
        if plan.identity is not None:
            os.chown(folder, plan.identity.uid, plan.identity.gid)
            plan.mounts.append(Mount(str(folder), str(PRIVATE_BUILD), False))
            folder = PRIVATE_BUILD
        order = {**(plan.spec.venv or {}), "folder": str(folder)}
        plan.environment[names.ENVIRONMENT_TO_BUILD] = json.dumps(order)
