"""Starts tasks that build Python environments on the agents that lack them."""

from determined.environments.inputs import name_of
from determined.link.messages import ContainerSpec
from determined.states import TaskKind
from determined_master.allocations.environment_wait_repository import EnvironmentWait
from determined_master.db.models import TaskRow
from determined_master.db.session import WriteSession
from determined_master.tasks import environment_repository, repository
from determined_master.tasks.service import NewTask, Tasks


async def start(session: WriteSession, tasks: Tasks, wait: EnvironmentWait) -> TaskRow:
    """Creates the task: no slots, on the agent that lacks it, as the owner of the attempt that asked for it, with its
    context and variables."""
    attempt = await environment_repository.attempt(session, wait.allocation_id)
    wanting = ContainerSpec.model_validate(attempt.spec)
    venv = wanting.venv or {}
    spec = ContainerSpec(
        task_id="",
        owner=wanting.owner,
        slots=[],
        environment={},
        user_environment=wanting.user_environment,
        device_environment=wanting.device_environment,
        entrypoint=["python3", "-m", "determined.exec.build_environment"],
        harness="ours",
        context=wanting.context,
        venv=venv,
        # Packages are added to the Python that the task has.
        image=wanting.image if "pip" in venv and (wanting.image or "").startswith("venv:") else None,
        builds_environment=wait.key,
    )
    task = await repository.get(session, wait.task_id)
    return await tasks.create(
        session,
        NewTask(
            kind=TaskKind.ENVIRONMENT,
            user_id=attempt.user_id,
            owner=attempt.owner,
            description=f"builds the environment {wait.key} of {name_of(venv)} on {wait.agent_id}",
            spec=spec,
            config={"environment": {"environment_variables": wanting.user_environment, "venv": wanting.venv}},
            slots=0,
            pool=attempt.pool,
            priority=attempt.priority,
            workspace_id=task.workspace_id,
            experiment_id=task.experiment_id,
            agent_id=wait.agent_id,
            environment_key=wait.key,
        ),
    )
