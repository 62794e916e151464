"""Fetches the context once, unpacks it into the working directory, and writes the info files."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from determined.client.certificates import FILE_VARIABLE, NAME_VARIABLE
from determined.context import unpack
from determined.errors import ContextError
from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.environment import CERTIFICATE
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.master_link.contexts import Contexts
from determined_agent.run_folders.tree_removal import remove_tree
from determined_agent.settings import Settings
from determined_launch import environment as names
from determined_launch.atomic_file import write_atomic
from determined_launch.out_of_space import is_out_of_space

_MOVED = {
    names.EXPERIMENT_CONFIG: "the experiment configuration",
    names.HPARAMS: "the hyperparameters, as JSON,",
    names.ENTRYPOINT_JSON: "the entrypoint",
}


class FilesHook:
    def __init__(self, settings: Settings, contexts: Contexts) -> None:
        self._settings = settings
        self._contexts = contexts

    async def do(self, plan: ContainerPlan) -> None:
        if plan.spec.context is not None:
            path = await self._contexts.fetch(plan.spec.context)
            try:
                ignored = await asyncio.to_thread(unpack, path, plan.folder.workdir)
                if ignored:
                    write_atomic(plan.folder.ignored, ignored, is_durable=False)
                if plan.has_installed_library:
                    await asyncio.to_thread(unpack, path, _model_copy(plan))
            except ContextError as problem:
                if problem.__cause__ is not None and is_out_of_space(problem.__cause__):
                    raise problem.__cause__ from None
                raise NotStarted(f"cannot unpack the context: {problem.message}") from problem
        self._copy_certificate(plan)
        for name, value in info_files(plan).items():
            file = plan.folder.info / name
            file.write_text(json.dumps(value))
            file.chmod(0o600)
        move_long_variables(plan)

    def _copy_certificate(self, plan: ContainerPlan) -> None:
        """Gives the task a copy of the master's certificate under the name that ``task_facts`` has announced."""
        trust = self._settings.trust
        if plan.environment.get(FILE_VARIABLE) and trust.verifies:
            copy = plan.folder.info / CERTIFICATE
            copy.write_bytes(Path(trust.file).read_bytes())
            copy.chmod(0o600)

    async def undo(self, plan: ContainerPlan) -> None:
        for folder in (plan.folder.workdir, plan.folder.run / "train"):  # not below a link of the task
            await asyncio.to_thread(remove_tree, folder)


def _model_copy(plan: ContainerPlan) -> Path:
    """Writes the context as it was submitted; the installed library stores it with a trial's checkpoint."""
    return plan.folder.run / "train" / "model"


def move_long_variables(plan: ContainerPlan) -> None:
    """Moves the cluster's variables that are too long for Linux into files, which ``NAME_FILE`` names.

    Raises NotStarted for a user's variable, and if the installed library, which does not know the files, reads the
    variable.
    """
    for name, value in list(plan.environment.items()):
        if not names.is_too_long(name, value):
            continue
        size = f"{len(os.fsencode(value)) >> 10} KiB"
        if name not in _MOVED:
            raise NotStarted(
                f"environment_variables: {name} is {size} long, and Linux allows 128 KiB for a variable; "
                "put the text into a file of the context"
            )
        if plan.has_installed_library and name != names.ENTRYPOINT_JSON:
            raise NotStarted(
                f"{_MOVED[name]} is {size} long, and the installed determined library reads it from a variable, for "
                "which Linux allows 128 KiB; put the long text into a file of the context, or set "
                "environment.harness: ours"
            )
        names.move_to_file(plan.environment, name, plan.folder.info, plan.run_dir / "info")


def info_files(plan: ContainerPlan) -> dict[str, dict[str, Any]]:
    """Returns ``cluster.json``, ``trial.json`` (trials only) and ``resources.json``, from the task's environment."""
    environment = plan.environment
    files: dict[str, dict[str, Any]] = {
        "cluster.json": {
            "master_url": environment.get(names.MASTER, ""),
            "cluster_id": environment.get(names.CLUSTER_ID, ""),
            "agent_id": environment.get(names.AGENT_ID, ""),
            "slot_ids": json.loads(environment.get(names.SLOT_IDS) or "[]"),
            "task_id": environment.get(names.TASK_ID, ""),
            "allocation_id": environment.get(names.ALLOCATION_ID, ""),
            "session_token": environment.get(names.SESSION_TOKEN, ""),
            "task_type": environment.get(names.TASK_TYPE, "TRIAL"),
            "master_cert_name": environment.get(NAME_VARIABLE),
            "master_cert_file": environment.get(FILE_VARIABLE),
            "latest_checkpoint": environment.get(names.LATEST_CHECKPOINT),
        },
        "resources.json": {"gpu_uuids": [uuid for uuid in environment.get("DET_GPU_UUIDS", "").split(",") if uuid]},
    }
    if environment.get(names.TRIAL_ID):
        files["trial.json"] = {
            "trial_id": int(environment[names.TRIAL_ID]),
            "experiment_id": int(environment.get(names.EXPERIMENT_ID, "0")),
            "trial_seed": int(environment.get(names.TRIAL_SEED, "0")),
            "hparams": json.loads(environment.get(names.HPARAMS) or "{}"),
            "config": json.loads(environment.get(names.EXPERIMENT_CONFIG) or "{}"),
            "steps_completed": int(environment.get(names.STEPS_COMPLETED, "0")),
            "trial_run_id": int(environment.get(names.TRIAL_RUN_ID, "0")),
            "debug": environment.get("DET_DEBUG", "").lower() in ("1", "true"),
            "inter_node_network_interface": environment.get("DET_INTER_NODE_NETWORK_INTERFACE"),
        }
    return files
